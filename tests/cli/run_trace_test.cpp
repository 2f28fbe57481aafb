// Runs as traces, and the traces of traces/samples, which were made that way.
#include "cli/output/run_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/run/programs.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kUs = 1'000'000'000;  // fs
const std::filesystem::path kSamples = std::filesystem::path(WEFT_SOURCE_DIR) / "traces" / "samples";

// A folder of a run in which the n-th operation of a GPU's program took microsecond n.
std::vector<Program> write_run(const TemporaryFolder& folder, const std::string& renamed = "") {
  folder.write("config.json", R"({"system": "hgx-h100", "gpus": 2, "workload": {"model": "resnet50", "batch": 1}})");
  std::vector<std::string> notes;
  std::vector<Program> programs = make_programs(read_run_config(folder.path() / "config.json", {}), notes);
  std::string rows = "gpu,stream,name,phase,start_s,end_s,isolated_s,slowdown,iteration,op,kind\n";
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu)
    for (std::size_t i = 0; i < programs[gpu].ops.size(); ++i) {
      const ProgramOp& op = programs[gpu].ops[i];
      if (op.kind == ProgramOpKind::host_wait) continue;
      rows += fmt::format("{},{},{},{},{}e-6,{}e-6,,,{},{},{}\n", gpu, op.stream.value,
                          i == 3 && !renamed.empty() ? renamed : op.name, to_string(op.phase), i, i + 1, op.iteration,
                          i, op.kind == ProgramOpKind::collective ? "communication" : "compute");
    }
  folder.write("kernels.csv", rows);
  return programs;
}

TEST(TraceOfRun, HasTheProgramAndWhenItRan) {
  const TemporaryFolder folder;
  const std::vector<Program> programs = write_run(folder);
  const Trace trace = trace_of_run(folder.path());
  EXPECT_EQ(trace.world_size, 2u);
  ASSERT_EQ(trace.ranks.size(), 2u);
  const TraceRank& rank = trace.ranks[1];
  EXPECT_EQ(rank.device, "H100-SXM5-80GB");
  EXPECT_EQ(rank.compute_units, 132u);
  ASSERT_EQ(rank.iterations.size(), 1u);
  ASSERT_EQ(rank.ops.size(), programs[1].ops.size());
  Time issued;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < rank.ops.size(); ++i) {
    const TraceOp& op = rank.ops[i];
    const ProgramOp& of = programs[1].ops[i];
    EXPECT_EQ(op.name, of.name);
    EXPECT_GE(op.issued, issued);
    issued = op.issued;
    if (op.kind == TraceOpKind::host_wait) continue;
    EXPECT_EQ(op.start.count(), static_cast<std::int64_t>(i) * kUs);
    EXPECT_EQ(op.duration.count(), kUs);
    EXPECT_EQ(op.stream, of.stream.value);
    EXPECT_EQ(op.waits.size(), of.waits.size());
    if (op.kind == TraceOpKind::kernel) {
      EXPECT_EQ(op.shape, of.kernel.shape);
    }
    if (op.collective) {
      elements += *op.collective->elements;
      EXPECT_THAT(op.collective->group_ranks, ElementsAre(0u, 1u));
    }
  }
  EXPECT_EQ(elements, 25'557'032);
}

TEST(TraceOfRun, RefusesRowsOfAnotherRun) {
  const TemporaryFolder folder;
  (void)write_run(folder, "stranger");
  try {
    (void)trace_of_run(folder.path());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("kernels.csv: expected the operations of the run's configuration, got "
                                        "stranger as GPU 0's number 3"));
  }
}

TEST(SampleTraces, AreSmallAndWhole) {
  for (const char* name : {"generated_resnet50", "generated_bert_large"}) {
    const std::filesystem::path file = kSamples / (std::string(name) + ".weft.json.gz");
    EXPECT_LT(std::filesystem::file_size(file), 300'000u);
    const Trace trace = read_trace(file);
    ASSERT_EQ(trace.ranks.size(), 2u) << name;
    EXPECT_EQ(trace.source, "simulated by weft");
    // As the run beside it says.
    std::vector<std::string> notes;
    const RunConfig config = read_run_config(kSamples / (std::string(name) + ".json"), {});
    EXPECT_EQ(make_programs(config, notes).at(0).ops.size(), trace.ranks[0].ops.size()) << name;
  }
}

// What ran is known here. Two kernels are beside communication whenever they run.
TEST(TraceOfRun, ReplaysAtTheRunsOwnTime) {
  const TemporaryFolder folder;
  folder.write("run.json", R"({"system": "mi300x", "gpus": 2,
                               "workload": {"model": "attention", "sequence": 512, "hidden": 512, "heads": 8}})");
  const auto iteration = [&](const std::string& arguments) {
    const Ran ran = weft("run --json " + arguments, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result").at("iteration");
  };
  const Json ran = iteration("run.json -o ran");
  ASSERT_EQ(weft("export trace ran -o t.json", folder).code, 0);
  folder.write("replay.json", R"({"system": "mi300x", "gpus": 2, "workload": {"trace": "t.json"}})");
  const double time = ran.at("time_s").get<double>();
  const double exposed = ran.at("communication_exposed_s").get<double>();
  for (const char* fidelity : {"cycle", "sampled"}) {
    const Json replayed = iteration(std::string("replay.json --fidelity ") + fidelity);
    EXPECT_NEAR(replayed.at("time_s").get<double>(), time, 0.02 * time) << fidelity;
    EXPECT_NEAR(replayed.at("communication_exposed_s").get<double>(), exposed, 0.02 * time) << fidelity;
  }
}

// With a rank that is late, so that each replays its own, and a sixteenth of the messages, so that it is quick: what is
// not communication takes as long as it did.
TEST(SampleTraces, ReplayAtTheirOwnTime) {
  const TemporaryFolder folder;
  Trace trace = read_trace(kSamples / "generated_bert_large.weft.json.gz");
  Time recorded = trace.ranks[0].iterations.back().end;
  constexpr std::int64_t kLate = 50 * kUs;
  for (TraceRank& rank : trace.ranks) {
    for (TraceOp& op : rank.ops) {
      if (op.collective) op.collective->elements = *op.collective->elements / 16;
      if (op.collective && rank.rank == 0) recorded = recorded - op.duration;
      if (rank.rank == 0) continue;
      op.issued += Time(kLate);
      op.start += Time(kLate);
    }
  }
  trace.ranks[1].iterations.back().end += Time(kLate);
  write_trace(trace, folder.path() / "late.json.gz");
  folder.write("run.json", R"({"system": "hgx-h100", "gpus": 2, "fidelity": "sampled",
                               "workload": {"trace": "late.json.gz"}})");
  const Ran ran = weft("run run.json --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "result");
  EXPECT_EQ(result.at("collectives").size(), 5u);
  const Json& times = result.at("iteration");
  const double apart = times.at("time_s").get<double>() - times.at("communication_exposed_s").get<double>();
  EXPECT_NEAR(apart, to_seconds(recorded), 0.03 * to_seconds(recorded));
}

// What an H200 recorded: all that a capture can tell of one GPU is in it.
TEST(CapturedSamples, TellIterationsPhasesClustersCountersAndTraffic) {
  struct Case {
    const char* name;
    std::size_t kernels, counted, clusters;
  };
  for (const Case& c : {Case{"h200_gpt2", 4365, 1912, 500}, Case{"h200_resnet50", 4674, 2480, 500}}) {
    const Trace trace = read_trace(kSamples / (std::string(c.name) + ".weft.json.gz"));
    ASSERT_EQ(trace.ranks.size(), 1U) << c.name;
    const TraceRank& rank = trace.ranks.front();
    EXPECT_EQ(rank.device, "NVIDIA H200");
    EXPECT_EQ(rank.iterations.size(), 5U);
    EXPECT_GT(rank.traffic.size(), 1000U);
    std::size_t kernels = 0, counted = 0, clusters = 0, backward = 0;
    for (const TraceOp& op : rank.ops) {
      if (op.kind != TraceOpKind::kernel) continue;
      ++kernels;
      counted += op.counters ? 1 : 0;
      clusters += op.shape && op.shape->cluster_blocks > 1 ? 1 : 0;
      backward += op.phase == TrainingPhase::backward ? 1 : 0;
    }
    EXPECT_EQ(kernels, c.kernels) << c.name;
    EXPECT_EQ(counted, c.counted) << c.name;
    EXPECT_GT(clusters, c.clusters) << c.name;
    EXPECT_GT(backward, kernels / 3) << c.name;
  }
}

// A100s have no clusters: what blocks of one fetched for each other, each of them fetches for itself there.
TEST(CapturedSamples, ClustersThatDoNotFitShareNothing) {
  const auto share = [](const char* system) {
    const Json document{
        {"system", system}, {"gpus", 1}, {"workload", {{"trace", (kSamples / "h200_gpt2.weft.json.gz").string()}}}};
    std::vector<std::string> notes;
    std::size_t clusters = 0, shared = 0;
    const std::vector<Program> programs = make_programs(read_run_config(document, "run.json"), notes);
    for (const ProgramOp& op : programs.front().ops) {
      clusters += op.kernel.shape.cluster_blocks > 1 ? 1 : 0;
      for (const Operand& operand : op.kernel.reads) shared += operand.shared_by > 1 ? 1 : 0;
    }
    return std::pair(clusters, shared);
  };
  const auto [clusters, shared] = share("hgx-h200");
  EXPECT_GT(clusters, 0U);
  EXPECT_GE(shared, clusters);
  EXPECT_EQ(share("dgx-a100"), std::pair(std::size_t{0}, std::size_t{0}));
}

}  // namespace
}  // namespace weft
