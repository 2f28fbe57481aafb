// Traces on another GPU than the one they were recorded on (workload.recorded_on), and on how many by default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/output/kernels_csv_reader.h"
#include "cli/run/recorded_waits.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/replay_graph.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr double kStreamed = 100e-6;  // as recorded, on an A100
constexpr double kComputed = 60e-6;

// A kernel that streams, by its grid more than any L2 holds, and one that computes in large blocks.
Trace streaming_and_computing() {
  Trace trace = small_trace();
  TraceRank& rank = trace.ranks.front();
  TraceOp streams = rank.ops.front();
  streams.name = "vectorized_elementwise_kernel";
  streams.duration = microseconds(100);
  streams.shape = LaunchShape{{20'000, 1, 1}, {128, 1, 1}, 32, 0};
  TraceOp computes = streams;
  computes.name = "sgemm_128x64_nn";
  computes.start = microseconds(120);
  computes.duration = microseconds(60);
  computes.shape = LaunchShape{{2 * 108, 1, 1}, {256, 1, 1}, 128, 150 << 10};
  TraceOp collective = rank.ops.back();
  collective.start = microseconds(200);
  collective.waits = {1};
  rank.iterations = {{"step", Time(0), microseconds(300)}};
  rank.ops = {streams, computes, collective};
  return trace;
}

class RecordedGpuEndToEnd : public ::testing::Test {
 protected:
  RecordedGpuEndToEnd() {
    write_trace(streaming_and_computing(), folder_.path() / "t.json");
    folder_.write("e.json", R"({"system": "hgx-h100", "workload": {"trace": "t.json"}})");
  }
  Ran run(const std::string& more, const std::string& out = "out") {
    const Ran ran = weft("run e.json --json -o " + out + " " + more, folder_);
    if (ran.code == 0) notes_ = parse_json(ran.output, "stdout").at("notes").dump();
    return ran;
  }
  // Seconds alone of the first kernel and of the second.
  std::vector<double> alone(const std::string& more, const std::string& out = "out") {
    const Ran ran = run(more, out);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    std::vector<double> seconds;
    for (const OperationRecord& row : read_kernels_csv(folder_.path() / out / "kernels.csv")) {
      if (row.gpu == 0 && row.isolated_s) seconds.push_back(*row.isolated_s);
    }
    EXPECT_EQ(seconds.size(), 2U);
    seconds.resize(2);
    return seconds;
  }
  TemporaryFolder folder_;
  std::string notes_;
};

TEST_F(RecordedGpuEndToEnd, KernelsTakeWhatTheyAskForOnTheSimulatedGpu) {
  const std::vector<double> fitted_here = alone("");
  EXPECT_NEAR(fitted_here[0], kStreamed, 0.02 * kStreamed);
  EXPECT_NEAR(fitted_here[1], kComputed, 0.02 * kComputed);
  EXPECT_THAT(notes_, HasSubstr("workload.recorded_on"));

  // HBM3 has 3352 GB/s, that of a DGX A100 of 80 GB 2039. Cycles are as many, at 1.98 GHz instead of 1.41, and 2 x 108
  // blocks still take two waves of 132 units.
  const std::vector<double> here = alone("--set workload.recorded_on=dgx-a100");
  EXPECT_NEAR(here[0], kStreamed * 2039 / 3352, 0.1 * kStreamed);
  EXPECT_NEAR(here[1], kComputed * 1.41 / 1.98, 0.1 * kComputed);
  EXPECT_THAT(notes_, HasSubstr("as that of dgx-a100, and run on H100-SXM5-80GB"));
  const std::vector<double> sampled = alone("--set workload.recorded_on=dgx-a100 --fidelity sampled");
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(sampled[k], here[k], 0.02 * here[k]);
}

TEST_F(RecordedGpuEndToEnd, OnTheSameGpuNothingChanges) {
  const std::vector<double> here = alone("--set system=dgx-a100");
  EXPECT_EQ(alone("--set system=dgx-a100 --set workload.recorded_on=dgx-a100"), here);
  // At half the rate, a stream takes twice as long but for its first and last blocks.
  const std::vector<double> slower =
      alone("--set system=dgx-a100 --set workload.recorded_on=dgx-a100 --set gpu.hbm.bandwidth_GBps=1020");
  EXPECT_NEAR(slower[0], 2 * here[0], 0.2 * here[0]);
}

TEST_F(RecordedGpuEndToEnd, DemandsAreOfTheRecordedGpu) {
  for (const char* system : {"dgx-a100", "hgx-h100"}) {
    const Ran ran = weft(std::string("calibrate t.json --system ") + system + " -o " + system, folder_);
    ASSERT_EQ(ran.code, 0) << ran.errors;
  }
  const std::vector<double> here = alone("--set workload.recorded_on=dgx-a100");
  EXPECT_EQ(alone("--set workload.recorded_on=dgx-a100 --set workload.demands=dgx-a100", "same"), here);
  EXPECT_EQ(read_file(folder_.path() / "same" / "kernels.csv"), read_file(folder_.path() / "out" / "kernels.csv"));
  const Ran refused = run("--set workload.recorded_on=dgx-a100 --set workload.demands=hgx-h100");
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.errors, HasSubstr("dgx-a100"));
}

TEST_F(RecordedGpuEndToEnd, BlocksThatDoNotFitTakeAUnit) {
  static_cast<void>(alone("--set system=dgx1-v100 --set workload.recorded_on=dgx-a100"));
  EXPECT_THAT(notes_, HasSubstr("Blocks of 1 kernels ask for more shared memory or registers than a unit of V100"));
}

TEST_F(RecordedGpuEndToEnd, SystemsThatAreNoneAreRefused) {
  const Ran refused = run("--set workload.recorded_on=dgx-a200");
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.errors, HasSubstr("/workload/recorded_on"));
}

TEST_F(RecordedGpuEndToEnd, GpusAreAsManyAsRecordedByDefault) {
  const auto gpus = [&](const std::string& more) {
    const Ran ran = run(more);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "stdout").at("config").at("gpus").get<int>();
  };
  EXPECT_EQ(gpus(""), 2);
  EXPECT_EQ(gpus("--set gpus=4"), 4);
  Trace many = streaming_and_computing();
  many.world_size = 16;
  many.ranks.front().ops.back().collective->group_size = 16;
  many.ranks.front().ops.back().collective->group_ranks.clear();
  write_trace(many, folder_.path() / "t.json");
  EXPECT_EQ(gpus("--fidelity sampled"), 8);
}

// The recorded ranks have the links among them, whatever part of its machine replays them: a recording of two MI300X.
TEST(RecordedWaits, AreThoseOfTheRecordedLinks) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  trace.ranks.front().ops.back().collective->elements = 1 << 20;
  write_trace(trace, folder.path() / "t.json");
  const Graph graph = graph_from_trace(trace, 0);
  const auto time = [&](const char* system, int gpus, const std::string& recorded_on) {
    Json workload{{"trace", (folder.path() / "t.json").string()}, {"recorded_on", recorded_on}};
    const RunConfig config = read_run_config(Json{{"system", system}, {"gpus", gpus}, {"workload", workload}}, "test");
    return recorded_collective_times(graph, config).at(1);
  };
  const Time two = time("mi300x", 2, "");
  EXPECT_GT(two, Time(0));
  EXPECT_EQ(time("mi300x", 8, ""), two);
  EXPECT_EQ(time("hgx-h100", 8, "mi300x"), two);
  EXPECT_LT(time("hgx-h100", 8, ""), two);
}

}  // namespace
}  // namespace weft
