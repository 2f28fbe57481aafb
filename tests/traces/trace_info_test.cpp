#include "traces/trace_info.h"

#include <gmock/gmock.h>

#include "traces/intervals.h"
#include "traces/launch_position.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TraceOp op(TraceOpKind kind, double start_us, double duration_us, std::uint32_t iteration, std::uint32_t stream = 7,
           const std::string& name = "k") {
  TraceOp out;
  out.kind = kind;
  out.name = name;
  out.iteration = iteration;
  out.stream = stream;
  out.issued = out.start = microseconds(start_us);
  out.duration = microseconds(duration_us);
  if (kind == TraceOpKind::collective)
    out.collective = TraceCollective{CollectiveKind::all_reduce, 10, DataType::fp32, 2, {}, ""};
  return out;
}

// Iteration 0: 30 us alone, 10 us alone; iteration 1: both under a collective of 100 us, of which 60 + 12 us are
// hidden.
Trace two_iterations() {
  Trace trace;
  trace.world_size = 2;
  TraceRank rank;
  rank.iterations = {{"ProfilerStep#0", Time(), microseconds(100)},
                     {"ProfilerStep#1", microseconds(100), microseconds(300)}};
  rank.ops = {op(TraceOpKind::kernel, 0, 30, 0),
              op(TraceOpKind::kernel, 40, 10, 0),
              op(TraceOpKind::collective, 100, 100, 1, 40, "nccl"),
              op(TraceOpKind::kernel, 105, 60, 1),
              op(TraceOpKind::kernel, 170, 12, 1),
              op(TraceOpKind::copy, 250, 5, 1)};
  trace.ranks.push_back(rank);
  return trace;
}

TEST(TraceInfo, CountsWhatIsThere) {
  const Json info = trace_info_json(two_iterations());
  EXPECT_EQ(info["ranks"], 1);
  EXPECT_EQ(info["kernels"], 5);
  EXPECT_EQ(info["collectives"], 1);
  EXPECT_EQ(info["copies"], 1);
  EXPECT_EQ(info["streams"], 2);
  EXPECT_EQ(info["iterations"], 2);
  EXPECT_EQ(info["per_rank"][0]["streams"], Json::parse("[7,40]"));
  EXPECT_EQ(info["per_iteration"].size(), 2u);
  EXPECT_EQ(info["per_iteration"][1]["collectives_by_kind"]["all_reduce"]["bytes"], 40);
}

TEST(TraceInfo, CountsTheKernelsThatHaveCounters) {
  Trace trace = two_iterations();
  EXPECT_EQ(trace_info_json(trace)["kernels_with_counters"], 0);
  EXPECT_THAT(trace_info_text(trace), ::testing::Not(HasSubstr("counters")));
  trace.ranks[0].ops[0].counters = std::make_shared<const KernelCounters>();
  EXPECT_EQ(trace_info_json(trace)["kernels_with_counters"], 1);
  EXPECT_EQ(trace_info_json(trace)["per_iteration"][0]["kernels_with_counters"], 1);
  EXPECT_THAT(trace_info_text(trace), HasSubstr("1 kernels have counters"));
}

TEST(TraceInfo, MeasuresHiddenCommunicationAndComputeUnderIt) {
  const Json info = trace_info_json(two_iterations());
  EXPECT_DOUBLE_EQ(info["communication_hidden"].get<double>(), 72.0 / 100);
  EXPECT_DOUBLE_EQ(info["compute_under_communication"].get<double>(), 72.0 / 112);
}

TEST(TraceInfo, ComparesEqualLaunchPositionsOfLongKernels) {
  const Json info = trace_info_json(two_iterations());
  EXPECT_EQ(info["positions"], 1);  // the kernel of 10 us is too short
  EXPECT_EQ(info["positions_slower"], 1);
  EXPECT_DOUBLE_EQ(info["slowdown_at_equal_positions"].get<double>(), 2.0);
}

TEST(TraceInfo, ComparesOnlyTheSameKernelAndGrid) {
  Trace trace = two_iterations();
  trace.ranks[0].ops[3].shape = LaunchShape{{5, 1, 1}, {32, 1, 1}, 0, 0};
  EXPECT_TRUE(trace_info_json(trace)["slowdown_at_equal_positions"].is_null());
  trace = two_iterations();
  trace.ranks[0].ops[3].iteration.reset();
  trace.ranks[0].ops[4].name = "another";
  EXPECT_TRUE(trace_info_json(trace)["slowdown_at_equal_positions"].is_null());
}

TEST(TraceInfo, HasNoSharesWithoutCommunication) {
  Trace trace = two_iterations();
  trace.ranks[0].ops.erase(trace.ranks[0].ops.begin() + 2);
  const Json info = trace_info_json(trace);
  EXPECT_TRUE(info["communication_hidden"].is_null());
  EXPECT_TRUE(info["slowdown_at_equal_positions"].is_null());
  EXPECT_EQ(info["collectives"], 0);
}

TEST(TraceInfo, SaysTheSameToPeople) {
  const std::string text = trace_info_text(two_iterations());
  EXPECT_THAT(text, HasSubstr("5 kernels (1 of them collectives)"));
  EXPECT_THAT(text, HasSubstr("72.0 %"));
  EXPECT_THAT(text, HasSubstr("2.000 (1 of 1 positions slower)"));
}

TEST(Intervals, MergesTouchingAndNestedOnes) {
  const auto merged =
      union_of({{Time(5), Time(9)}, {Time(0), Time(2)}, {Time(2), Time(3)}, {Time(6), Time(7)}, {Time(4), Time(4)}});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(length(merged), Time(7));
  EXPECT_EQ(overlap({Time(1), Time(6)}, merged), Time(3));
  EXPECT_EQ(overlap({Time(3), Time(5)}, merged), Time(0));
}

TEST(LaunchPosition, TakesTheMedianOfTheTimesAlone) {
  EXPECT_EQ(median({Time(3), Time(1), Time(2)}), Time(2));
  EXPECT_EQ(median({Time(4), Time(1), Time(2), Time(100)}), Time(3));
}

// Of 100 us each: one before the iterations, three within, one behind.
TEST(TraceInfo, TrafficIsThatOfTheIterations) {
  Trace trace = two_iterations();
  EXPECT_TRUE(trace_info_json(trace)["per_rank"][0]["traffic"].is_null());
  EXPECT_THAT(trace_info_text(trace), ::testing::Not(HasSubstr("GB/s")));
  TraceTraffic& traffic = trace.ranks[0].traffic;
  for (TraceIteration& it : trace.ranks[0].iterations) {
    it.start += microseconds(100);
    it.end += microseconds(100);
  }
  for (int i = 0; i < 5; ++i) {
    traffic.start.push_back(microseconds(100 * i));
    traffic.duration.push_back(microseconds(100));
  }
  traffic.bytes[0] = {1 << 30, 50'000'000, 100'000'000, 0, 1 << 30};
  traffic.bytes[1] = {0, 10'000'000, 20'000'000, 0, 0};
  traffic.bytes[2] = {0, 30'000'000, 30'000'000, 0, 0};
  const Json info = trace_info_json(trace)["per_rank"][0]["traffic"];
  EXPECT_EQ(info["samples"], 3);
  EXPECT_DOUBLE_EQ(info["time_s"].get<double>(), 300e-6);
  EXPECT_DOUBLE_EQ(info["hbm_GBps"]["mean"].get<double>(), 600);
  EXPECT_DOUBLE_EQ(info["hbm_GBps"]["highest"].get<double>(), 1200);
  EXPECT_DOUBLE_EQ(info["nvlink_received_GBps"]["mean"].get<double>(), 200);
  EXPECT_DOUBLE_EQ(info["nvlink_received_GBps"]["highest"].get<double>(), 300);
  EXPECT_TRUE(info["nvlink_sent_GBps"].is_null());
  EXPECT_THAT(trace_info_text(trace),
              HasSubstr("rank 0 in its iterations: HBM 600.0 GB/s (highest 1200.0), NVLink in 200.0 GB/s "
                        "(highest 300.0), by 3 samples\n"));
}

}  // namespace
}  // namespace weft
