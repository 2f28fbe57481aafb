#include "cli/commands/summary.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/output/result_json.h"
#include "cli/report/report_figures.h"
#include "cli/report/report_units.h"
#include "sim/error.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using weft::testing::sample_result;

// A run with round numbers: 50 ms, of it 40 ms of kernels, 8 ms exposed communication, 2 ms idle.
RunResult round_run(double backward_s, double exposed_s) {
  RunResult result;
  result.config = {
      {"system", "hgx-h100"}, {"gpus", 2}, {"workload", {{"model", "vgg16"}}}, {"all_reduce", {{"algorithm", "ring"}}}};
  IterationTimes& times = result.iteration;
  times.forward_s = 10e-3;
  times.backward_isolated_s = 20e-3;
  times.backward_s = backward_s;
  times.backward_slowdown = backward_s / 20e-3;
  times.optimizer_s = 5e-3;
  times.communication_exposed_s = exposed_s;
  times.communication_overlapped_s = 12e-3;
  times.communication_s = exposed_s + 12e-3;
  times.idle_s = 2e-3;
  times.time_s = 15e-3 + backward_s + exposed_s + 2e-3;
  result.per_iteration_s = {times.time_s, times.time_s};
  const double added = backward_s - 20e-3;
  result.slowdown_by_cause = SlowdownByCause{0.6 * added, 0.3 * added, 0.1 * added, 0};
  result.samples_per_s = 64 / times.time_s;
  result.collectives = {{"a", "all_reduce", "ring", "simple", 24, 1, 2, 0, 1e-3, 50, 100},
                        {"b", "all_reduce", "ring", "simple", 24, 1, 2, 1e-3, 4e-3, 100, 200}};
  for (std::uint32_t id = 0; id < 2; ++id) {
    GpuResult gpu;
    gpu.id = id;
    gpu.hbm_read_bytes = 30'000'000'000;
    gpu.hbm_write_bytes = 10'000'000'000;
    gpu.hbm_communication_bytes = id == 0 ? 6'000'000'000 : 10'000'000'000;
    result.gpus.push_back(gpu);
  }
  return result;
}

TEST(Figures, FollowFromTheResult) {
  const Figures figures = figures_of(result_to_json(round_run(25e-3, 8e-3)));
  EXPECT_NEAR(*figures.iteration_s, 50e-3, 1e-12);
  EXPECT_NEAR(*figures.compute_s, 40e-3, 1e-12);
  EXPECT_NEAR(*figures.busbw_GBps, 175, 1e-9);  // 1 ms at 100, 3 ms at 200
  EXPECT_NEAR(*figures.hbm_bytes, 20e9, 1);     // of one GPU and one of two iterations
  EXPECT_NEAR(*figures.hbm_communication_bytes, 4e9, 1);
  ASSERT_EQ(figures.causes.size(), 4U);
  EXPECT_NEAR(figures.causes[0].seconds, 3e-3, 1e-12);
}

TEST(Figures, AnotherDocumentIsAnError) {
  EXPECT_THROW(static_cast<void>(figures_of(Json::object())), InputError);
  EXPECT_THROW(static_cast<void>(figures_of(Json{{"schema", "weft-result/1"}})), InputError);
}

TEST(Summary, SaysVerdictTimesAndCauses) {
  const std::string text = run_summary(round_run(25e-3, 8e-3), false);
  EXPECT_THAT(text, StartsWith("vgg16 on 2 GPUs of hgx-h100, ring all-reduce\n"
                               "Backward runs 1.25x as long beside communication: 25.0 ms instead of 20.0 ms. 60 % of "
                               "the added 5.00 ms comes from compute units."));
  EXPECT_THAT(text, ContainsRegex("iteration +50\\.0 ms +1280 samples/s"));
  EXPECT_THAT(text, ContainsRegex("backward +25\\.0 ms +alone 20\\.0 ms, slowdown 1\\.25x"));
  EXPECT_THAT(text, HasSubstr("compute units 3.00 ms (60 %), HBM 1.50 ms (30 %), cache 500 us (10 %), links 0 ms"));
  EXPECT_THAT(text, ContainsRegex("communication +20\\.0 ms +exposed 8\\.00 ms, overlapped 12\\.0 ms"));
  EXPECT_THAT(text, ContainsRegex("bus bandwidth +175 GB/s"));
  EXPECT_THAT(text, HasSubstr("communication takes 4.00 GB (20 %)"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_summary(round_run(25e-3, 8e-3), true), HasSubstr("\x1b[1m"));
}

TEST(Summary, ABackwardPassThatIsNotSlowedSaysSo) {
  EXPECT_THAT(run_summary(round_run(20e-3, 0), false),
              HasSubstr("Communication does not slow the backward pass: 20.0 ms, as alone."));
}

TEST(Summary, ACollectiveAloneHasNoBackward) {
  RunResult result = round_run(25e-3, 8e-3);
  result.config["workload"] = {{"collective", "all_reduce"}, {"bytes", 268435456}};
  result.iteration.forward_s.reset();
  result.iteration.backward_s.reset();
  result.iteration.backward_isolated_s.reset();
  result.iteration.backward_slowdown.reset();
  result.iteration.optimizer_s.reset();
  result.slowdown_by_cause.reset();
  const std::string text = run_summary(result, false);
  EXPECT_THAT(text, StartsWith("all_reduce of 256 MiB on 2 GPUs of hgx-h100, ring all-reduce\n"
                               "One iteration takes 50.0 ms. 2 collectives at 175 GB/s bus bandwidth."));
  EXPECT_THAT(text, Not(HasSubstr("backward")));
}

TEST(Summary, OutOfMemoryIsTheVerdict) {
  RunResult result = round_run(25e-3, 8e-3);
  result.status = "out_of_memory";
  result.out_of_memory = OutOfMemory{1, "conv3", 1'000'000'000, {}};
  const std::string text = run_summary(result, false);
  EXPECT_THAT(text, HasSubstr("Does not fit: GPU 1 is 1.00 GB over at conv3."));
  EXPECT_THAT(text, Not(HasSubstr("iteration ")));
}

TEST(Comparison, ListsTheFiguresSideBySideAndSaysWhatDiffers) {
  const std::string table = comparison_table(
      {{"ring", result_to_json(round_run(25e-3, 8e-3))}, {"in_switch", result_to_json(round_run(21e-3, 2e-3))}}, false);
  EXPECT_THAT(table, ContainsRegex("ring +in_switch\n"));
  EXPECT_THAT(table, ContainsRegex("iteration +50\\.0 ms +40\\.0 ms\n"));
  EXPECT_THAT(table, ContainsRegex("backward alone +20\\.0 ms +20\\.0 ms\n"));
  EXPECT_THAT(table, ContainsRegex("backward overlapped +25\\.0 ms +21\\.0 ms\n"));
  EXPECT_THAT(table, ContainsRegex("backward slowdown +1\\.25x +1\\.050x\n"));
  EXPECT_THAT(table, ContainsRegex("exposed communication +8\\.00 ms +2\\.00 ms\n"));
  EXPECT_THAT(table, ContainsRegex("bus bandwidth +175 GB/s +175 GB/s\n"));
  EXPECT_THAT(table, ContainsRegex("HBM taken by communication +4\\.00 GB +4\\.00 GB\n"));
  EXPECT_THAT(table, ContainsRegex("throughput +1280 samples/s +1600 samples/s\n"));
  EXPECT_THAT(table, HasSubstr("in_switch takes 40.0 ms an iteration against 50.0 ms with ring: 1.25x faster. Most of "
                               "it is exposed communication: 6.00 ms less (2.00 ms against 8.00 ms). Backward slows "
                               "down 1.050x instead of 1.25x."));
}

TEST(Comparison, TheReasonFollowsTheNumbers) {
  const Json fast = result_to_json(round_run(21e-3, 2e-3)), slow = result_to_json(round_run(27e-3, 2e-3));
  EXPECT_THAT(comparison_verdict({{"a", slow}, {"b", fast}}),
              HasSubstr("Most of it is compute time: 6.00 ms less, of which 3.60 ms by compute units"));
  EXPECT_THAT(comparison_verdict({{"a", fast}, {"b", slow}}), HasSubstr("slower. Most of it is compute time: 6.00 ms "
                                                                        "more"));
  EXPECT_THAT(comparison_verdict({{"a", fast}, {"b", fast}}), StartsWith("b and a take the same time"));
  EXPECT_EQ(comparison_verdict({{"a", fast}}), "");
  EXPECT_THAT(comparison_verdict({{"base", slow}, {"slower", result_to_json(round_run(30e-3, 2e-3))}, {"best", fast}}),
              StartsWith("best takes"));
}

// As data parallelism with a sample on each GPU, against one sample that all share.
TEST(Comparison, IterationsOfOtherNumbersOfSamplesCompareByThroughput) {
  RunResult twice = round_run(25e-3, 8e-3), half = round_run(21e-3, 2e-3);  // 64 samples in 50 ms, and in 40
  half.samples_per_s = *half.samples_per_s / 2;
  const Json whole = result_to_json(twice), less = result_to_json(half);
  EXPECT_EQ(comparison_verdict({{"all", whole}, {"less", less}}),
            "less does 800 samples/s against 1280 with all: 1.60x slower. Iterations are not the same work: 32 samples "
            "in 40.0 ms against 64 samples in 50.0 ms.");
  half.samples_per_s = twice.samples_per_s;
  EXPECT_THAT(comparison_verdict({{"all", whole}, {"less", result_to_json(half)}}), HasSubstr("with all: the same. "));
  EXPECT_THAT(comparison_verdict({{"slow", result_to_json(round_run(30e-3, 8e-3))}, {"less", less}, {"all", whole}}),
              StartsWith("all takes"));
}

TEST(Comparison, ARunThatDoesNotFinishHasDashesAndIsNamed) {
  RunResult failed = round_run(25e-3, 8e-3);
  failed.status = "out_of_memory";
  failed.out_of_memory = OutOfMemory{0, "conv3", 1'000'000'000, {}};
  const std::string table =
      comparison_table({{"whole", result_to_json(failed)}, {"split", result_to_json(round_run(25e-3, 8e-3))}}, false);
  EXPECT_THAT(table, ContainsRegex("whole \\(out_of_memory\\) +split\n"));
  EXPECT_THAT(table, ContainsRegex("iteration +- +50\\.0 ms\n"));
  EXPECT_THAT(table, HasSubstr("whole does not finish (out_of_memory); split does."));
}

TEST(Comparison, ManyRunsAreRows) {
  const Json result = result_to_json(round_run(25e-3, 8e-3));
  const std::string table =
      comparison_table({{"a", result}, {"b", result}, {"c", result}, {"d", result}, {"eee", result}}, false);
  EXPECT_THAT(table, ContainsRegex("\n  eee +50\\.0 ms +20\\.0 ms"));
}

TEST(Units, AreWhatPeopleRead) {
  EXPECT_EQ(time_text(0.0523), "52.3 ms");
  EXPECT_EQ(time_text(0.9996), "1.00 s");
  EXPECT_EQ(time_text(999.7e-6), "1.00 ms");
  EXPECT_EQ(time_text(0), "0 ms");
  EXPECT_EQ(bytes_text(4.2e9), "4.20 GB");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(percent_text(0.625), "62 %");
  EXPECT_EQ(percent_text(0.031), "3.1 %");
  EXPECT_EQ(binary_size_text(268435456), "256 MiB");
  EXPECT_EQ(binary_size_text(1000), "1.00 kB");
}

}  // namespace
}  // namespace weft
