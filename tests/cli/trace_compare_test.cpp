// A replay against its trace: operations are joined by order, and kernels beside collectives compared.
#include "cli/commands/trace_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/commands/trace_steps.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TraceOp op(TraceOpKind kind, const std::string& name, double start_us, double duration_us, std::uint32_t iteration,
           std::uint32_t stream) {
  TraceOp out;
  out.kind = kind;
  out.name = name;
  out.iteration = iteration;
  out.stream = stream;
  out.start = out.issued = microseconds(start_us);
  out.duration = microseconds(duration_us);
  if (kind == TraceOpKind::kernel) out.shape = LaunchShape{{100, 1, 1}, {128, 1, 1}, 0, 0};
  return out;
}

// A kernel alone in the first iteration, and beside a collective, 1.5 times as long, in the second.
Trace recorded() {
  Trace trace;
  TraceRank rank;
  rank.iterations = {{"a", Time(), microseconds(100)}, {"b", microseconds(100), microseconds(300)}};
  rank.ops = {op(TraceOpKind::kernel, "k, \"q\"", 10, 40, 0, 9), op(TraceOpKind::collective, "nccl", 60, 10, 0, 20),
              op(TraceOpKind::kernel, "k, \"q\"", 120, 60, 1, 9), op(TraceOpKind::collective, "nccl", 110, 120, 1, 20)};
  trace.ranks = {rank};
  return trace;
}

constexpr const char* kHeader = "gpu,stream,name,start_s,end_s,isolated_s,iteration,op,kind\n";

class TraceCompare : public ::testing::Test {
 protected:
  Json compare(const std::string& csv) const {
    folder_.write("kernels.csv", csv);
    return compare_with_trace(recorded(), 0, read_kernels_csv(folder_.path() / "kernels.csv"), 0, "kernels.csv");
  }
  std::string refusal(const std::string& csv) const {
    try {
      static_cast<void>(compare(csv));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST_F(TraceCompare, JoinsByOrderOnTheStream) {
  const Json found = compare(std::string(kHeader) +
                             "0,1,nccl,60e-6,70e-6,,0,1,communication\n"
                             "0,0,\"k, \"\"q\"\"\",10e-6,50e-6,40e-6,0,0,compute\n"
                             "0,0,\"k, \"\"q\"\"\",120e-6,170e-6,40e-6,1,2,compute\n"
                             "1,0,other,120e-6,170e-6,40e-6,1,2,compute\n"
                             "0,1,nccl,110e-6,200e-6,,1,3,communication\n");
  EXPECT_EQ(found["iterations"], 2);
  EXPECT_DOUBLE_EQ(found["recorded"]["slowdown"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(found["simulated"]["slowdown"].get<double>(), 1.25);
  EXPECT_NEAR(found["compared"]["mean_error"].get<double>(), 0.25, 1e-12);
  EXPECT_EQ(found["compared"]["slowed_or_not_right"], 1);
  EXPECT_NEAR(found["recorded"]["hidden"].get<double>(), 60.0 / 130, 1e-12);
  EXPECT_NEAR(found["simulated"]["hidden"].get<double>(), 0.5, 1e-12);
  EXPECT_THAT(trace_comparison_text(found), HasSubstr("recorded: slowdown beside communication 1.500"));
}

TEST_F(TraceCompare, CountsAPositionThatIsAloneInTheRunForTheRecordingOnly) {
  const Json found = compare(std::string(kHeader) +
                             "0,0,\"k, \"\"q\"\"\",10e-6,50e-6,40e-6,0,0,compute\n"
                             "0,0,\"k, \"\"q\"\"\",120e-6,160e-6,40e-6,1,2,compute\n");
  EXPECT_EQ(found["recorded"]["positions"], 1);
  EXPECT_EQ(found["compared"]["positions"], 0);
  EXPECT_TRUE(found["simulated"]["slowdown"].is_null());
}

TEST_F(TraceCompare, IterationsOfBothSidesAreThoseOfAResult) {
  folder_.write("kernels.csv", std::string(kHeader) + "0,0,\"k, \"\"q\"\"\",10e-6,50e-6,40e-6,0,0,compute\n");
  const auto rows = read_kernels_csv(folder_.path() / "kernels.csv");
  Trace trace = recorded();
  const auto recorded_us = [&] {
    const Json steps = compare_steps(trace, {}, rows, {90e-6, 150e-6}, "kernels.csv");
    std::vector<double> us;
    for (const Json& s : steps.at("recorded_s")) us.push_back(std::round(s.get<double>() * 1e9) / 1e3);
    return us;
  };
  EXPECT_THAT(recorded_us(), ElementsAre(100, 200));  // the host's, to which nothing runs longer
  trace.ranks[0].iterations = {{"a", Time(), microseconds(40)}, {"b", microseconds(40), microseconds(80)}};
  EXPECT_THAT(recorded_us(), ElementsAre(70, 160));  // the device's
  for (TraceOp& op : trace.ranks[0].ops) op.start += microseconds(500);
  EXPECT_THAT(recorded_us(), ElementsAre(60, 160));  // it began at 510, behind what it was at before
  EXPECT_EQ(compare_steps(trace, {}, rows, {90e-6, 150e-6}, "kernels.csv").at("simulated_s"), Json({90e-6, 150e-6}));
}

TEST_F(TraceCompare, RefusesARunOfAnotherTrace) {
  EXPECT_THAT(refusal(std::string(kHeader) + "0,0,other,10e-6,50e-6,40e-6,0,0,compute\n"),
              HasSubstr("expected a run that replayed this trace"));
  EXPECT_THAT(refusal(kHeader), HasSubstr("expected operations of GPU 0, got none"));
  const std::string first = std::string(kHeader) + "0,0,\"k, \"\"q\"\"\",10e-6,50e-6,40e-6,0,0,compute\n";
  EXPECT_EQ(refusal(first), "");
  EXPECT_THAT(refusal(first + "0,0,more,60e-6,70e-6,40e-6,0,1,compute\n"),
              HasSubstr("none as operation 1 of stream 0 in iteration 0, got more"));
  EXPECT_THAT(refusal(first + "0,1,nccl,60e-6,70e-6,,0,1,communication\n0,1,nccl,80e-6,90e-6,,0,2,communication\n"),
              HasSubstr("none as operation 1 of stream 1 in iteration 0, got nccl"));
  EXPECT_THAT(refusal(first + "0,0,k,110e-6,120e-6,40e-6,2,1,compute\n"), HasSubstr("in iteration 1, got none"));
}

TEST_F(TraceCompare, RefusesAFileThatIsNoKernelsCsv) {
  EXPECT_THAT(refusal("gpu,name\n0,k\n"), HasSubstr("line 2: expected a column \"stream\", got none"));
  EXPECT_THAT(refusal(std::string(kHeader) + "x,0,k,0,1,,0,0,compute\n"),
              HasSubstr("expected a number in column \"gpu\", got \"x\""));
  EXPECT_THAT(refusal(std::string(kHeader) + "0,0,\"k"), HasSubstr("expected a quoted field to end"));
}

}  // namespace
}  // namespace weft
