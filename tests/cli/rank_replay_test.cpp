// Runs of traces that hold several ranks: each GPU its own, and how they differ is in the result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "cli/output/kernels_csv_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

// Rank 1 does the same as rank 0 behind a kernel of its own, and comes to the all-reduce 200 us later.
Trace two_ranks() {
  Trace trace = small_trace();
  TraceRank second = trace.ranks.front();
  second.rank = 1;
  TraceOp more = second.ops.front();
  more.name = "vectorized_elementwise_kernel";
  second.ops.insert(second.ops.begin() + 1, more);
  for (std::size_t i = 1; i < second.ops.size(); ++i) {
    second.ops[i].issued += microseconds(200);
    second.ops[i].start += microseconds(200);
  }
  second.ops.back().waits = {1};
  trace.ranks.push_back(second);
  return trace;
}

constexpr const char* kRun = R"({"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}})";

TEST(RankReplayEndToEnd, EachGpuRunsItsOwnRankAndWaitsForTheLateOne) {
  const TemporaryFolder folder;
  write_trace(two_ranks(), folder.path() / "t.json");
  folder.write("e.json", kRun);
  const Ran ran = weft("run e.json -o out --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "stdout");
  EXPECT_THAT(result.at("notes").dump(), HasSubstr("Each GPU replays its own of the 2 recorded ranks."));
  const std::string csv = read_file(folder.path() / "out" / "kernels.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 + 3);
  // The all-reduce takes what rank 0 waits for rank 1.
  const Json& collective = result.at("collectives").at(0);
  EXPECT_NEAR(collective.at("waiting_s").get<double>(), 200e-6, 10e-6);

  const Ran compared = weft("trace compare t.json out --gpu 1 --json", folder);
  ASSERT_EQ(compared.code, 0) << compared.errors;
  const Json steps = parse_json(compared.output, "stdout").at("steps");
  ASSERT_EQ(steps.at("gpus").size(), 2U);
  EXPECT_EQ(steps.at("gpus").at(1).at("rank"), 1);
  EXPECT_NEAR(steps.at("recorded_s").at(0).get<double>(), 250e-6, 1e-9);
  const double waits = steps.at("gpus").at(0).at("simulated").at("communication_exposed_s").get<double>();
  const double comes = steps.at("gpus").at(1).at("simulated").at("communication_exposed_s").get<double>();
  EXPECT_NEAR(waits - comes, 200e-6, 10e-6);
}

TEST(RankReplayEndToEnd, ARunOfAnotherTraceIsNotCompared) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", kRun);
  ASSERT_EQ(weft("run e.json -o out", folder).code, 0);
  write_trace(trace, folder.path() / "packed.json.gz");
  EXPECT_EQ(weft("trace compare packed.json.gz out", folder).code, 0);
  trace.ranks[0].ops[0].duration += microseconds(1);  // the same kernels, recorded another time
  write_trace(trace, folder.path() / "other.json");
  const Ran refused = weft("trace compare other.json out", folder);
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.errors, HasSubstr("out/config.json: /workload/trace: expected a run that replayed other.json"));
  EXPECT_THAT(refused.errors, HasSubstr("t.json"));
  // Its file need not be there any more, and may hold another one by now.
  std::filesystem::rename(folder.path() / "other.json", folder.path() / "t.json");
  EXPECT_EQ(weft("trace compare packed.json.gz out", folder).code, 0);
  EXPECT_EQ(weft("trace compare t.json out", folder).code, 65);
  std::filesystem::remove(folder.path() / "t.json");
  EXPECT_EQ(weft("trace compare packed.json.gz out", folder).code, 0);
}

// By the file, not by what that was imported from.
TEST(RankReplayEndToEnd, WhatCannotBeReplayedIsToldOfItsFile) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  trace.source = "profile.json";
  for (TraceOp& op : trace.ranks[0].ops)
    if (op.collective) op.collective->elements.reset();
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", kRun);
  const Ran refused = weft("run e.json -o out", folder);
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.errors, HasSubstr("t.json: /ranks/0/ops/"));
  EXPECT_THAT(refused.errors, Not(HasSubstr("profile.json")));
}

TEST(RankReplayEndToEnd, TheSameForAnyNumberOfThreadsAndWithDemandsFromAFile) {
  const TemporaryFolder folder;
  write_trace(two_ranks(), folder.path() / "t.json");
  folder.write("e.json", kRun);
  ASSERT_EQ(weft("run e.json -o one", folder).code, 0);
  ASSERT_EQ(weft("run e.json -o two --threads 2", folder).code, 0);
  const Ran calibrated = weft("calibrate t.json --system dgx-a100 -o d.json", folder);
  ASSERT_EQ(calibrated.code, 0) << calibrated.errors;
  const Ran read = weft("run e.json -o read --set workload.demands=d.json", folder);
  ASSERT_EQ(read.code, 0) << read.errors;
  const std::string one = read_file(folder.path() / "one" / "kernels.csv");
  EXPECT_EQ(one, read_file(folder.path() / "two" / "kernels.csv"));
  EXPECT_EQ(one, read_file(folder.path() / "read" / "kernels.csv"));
}

TEST(RankReplayEndToEnd, OneRankForAllWhereItIsNamed) {
  const TemporaryFolder folder;
  write_trace(two_ranks(), folder.path() / "t.json");
  folder.write("e.json", kRun);
  const Ran ran = weft("run e.json -o out --json --set workload.rank=1 --set gpus=4", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("Every GPU replays rank 1 of 2"));
  EXPECT_EQ(weft("trace compare t.json out --gpu 3", folder).code, 0);
  const Ran none = weft("run e.json -o out --set workload.rank=2", folder);
  EXPECT_EQ(none.code, 65);
  EXPECT_THAT(none.errors, HasSubstr("expected rank 2 (workload.rank), got a trace of 0, 1"));
}

TEST(RankReplayEndToEnd, GpusThatAreNotTheRanksAreRefused) {
  const TemporaryFolder folder;
  write_trace(two_ranks(), folder.path() / "t.json");
  folder.write("e.json", kRun);
  const Ran ran = weft("run e.json -o out --set gpus=4", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, HasSubstr("expected as many GPUs as recorded ranks (2)"));
}

// Rows of kernels.csv: start and end by GPU and name.
std::map<std::string, std::pair<double, double>> times_of(const std::filesystem::path& csv) {
  std::map<std::string, std::pair<double, double>> times;
  for (const OperationRecord& row : read_kernels_csv(csv))
    times[std::to_string(row.gpu) + " " + row.name] = {row.start_s, row.end_s};
  return times;
}

TEST(RankReplayEndToEnd, SampledTakesWhatIsKnownOfOperationsByThemselves) {
  const TemporaryFolder folder;
  write_trace(two_ranks(), folder.path() / "t.json");
  folder.write("e.json", kRun);
  ASSERT_EQ(weft("run e.json -o cycle", folder).code, 0);
  const Ran ran = weft("run e.json -o sampled --json --fidelity sampled", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("Sampled: 0 of 5 operations ran beside others"));
  const auto cycle = times_of(folder.path() / "cycle" / "kernels.csv");
  const auto sampled = times_of(folder.path() / "sampled" / "kernels.csv");
  ASSERT_EQ(cycle.size(), sampled.size());
  for (const auto& [name, times] : cycle) {
    EXPECT_NEAR(sampled.at(name).first, times.first, 3e-6) << name;
    EXPECT_NEAR(sampled.at(name).second, times.second, 3e-6) << name;
  }
}

// The all-reduce no longer waits for the kernels before it: they run beside it.
TEST(RankReplayEndToEnd, SampledSimulatesInDetailWhatMeets) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  for (TraceRank& rank : trace.ranks) {
    rank.ops.back().waits.clear();
    rank.ops.back().issued = rank.ops[0].issued;
    std::rotate(rank.ops.begin(), rank.ops.end() - 1, rank.ops.end());
    for (TraceOp& op : rank.ops) op.issued = Time(0);
  }
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", kRun);
  ASSERT_EQ(weft("run e.json -o cycle", folder).code, 0);
  const Ran ran = weft("run e.json -o sampled --json --fidelity sampled", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, Not(HasSubstr("Sampled: 0 of")));
  const auto cycle = times_of(folder.path() / "cycle" / "kernels.csv");
  for (const auto& [name, times] : times_of(folder.path() / "sampled" / "kernels.csv"))
    EXPECT_NEAR(times.second, cycle.at(name).second, 2e-6) << name;
  ASSERT_EQ(weft("run e.json -o again --fidelity sampled --threads 2", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "again" / "kernels.csv"), read_file(folder.path() / "sampled" / "kernels.csv"));
}

// The last of three stages is late: the first one's message is not for it.
TEST(RankReplayEndToEnd, SampledStagesOfAPipelineWaitForTheirNeighboursOnly) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  trace.world_size = 3;
  trace.ranks.insert(trace.ranks.begin() + 1, trace.ranks[0]);
  for (std::uint32_t r = 0; r < 3; ++r) {
    trace.ranks[r].rank = r;
    TraceCollective& shift = *trace.ranks[r].ops.back().collective;
    shift.kind = CollectiveKind::shift;
    shift.first = 0;
    shift.group_size = 3;
    shift.group_ranks = {0, 1, 2};
  }
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 3, "workload": {"trace": "t.json"}})");
  ASSERT_EQ(weft("run e.json -o cycle", folder).code, 0);
  ASSERT_EQ(weft("run e.json -o sampled --fidelity sampled", folder).code, 0);
  const auto cycle = times_of(folder.path() / "cycle" / "kernels.csv");
  const auto sampled = times_of(folder.path() / "sampled" / "kernels.csv");
  ASSERT_EQ(cycle.size(), sampled.size());
  for (const auto& [name, times] : cycle) EXPECT_NEAR(sampled.at(name).second, times.second, 3e-6) << name;
  EXPECT_GT(cycle.at("2 ncclKernel_AllReduce").second - cycle.at("0 ncclKernel_AllReduce").second, 100e-6);
}

// Its name and grid tell little of how long it takes.
TEST(RankReplayEndToEnd, AKernelThatNeverRanAloneTakesItsTimeBesideCommunication) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  for (TraceRank& rank : trace.ranks) {
    rank.ops.back().waits.clear();
    TraceOp beside = rank.ops.front();
    beside.name = "of_unknown_kind";
    beside.issued = rank.ops.back().issued;
    beside.start = rank.ops.back().start;
    beside.duration = microseconds(25);
    rank.ops.push_back(beside);
  }
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", kRun);
  const auto alone = [&](const std::string& set) {
    const Ran ran = weft("run e.json -o out --json" + set, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    double sum = 0;
    for (const OperationRecord& row : read_kernels_csv(folder.path() / "out" / "kernels.csv"))
      if (row.name == "of_unknown_kind") sum += row.isolated_s.value();
    return std::pair(sum / 2, ran.output);
  };
  const auto [fitted, told] = alone("");
  EXPECT_NEAR(fitted, 25e-6, 0.5e-6);
  EXPECT_THAT(told, HasSubstr("2 kernels never ran alone in the trace"));
  EXPECT_THAT(alone(" --fidelity sampled").second, HasSubstr("2 kernels never ran alone in the trace"));
  const auto [guessed, not_told] = alone(" --set workload.fit_overlapped=false");
  EXPECT_LT(guessed, 10e-6);
  EXPECT_THAT(not_told, Not(HasSubstr("never ran alone")));
}

// Of two communicators, in different orders on one stream.
TEST(RankReplayEndToEnd, RanksThatWaitForEachOtherAreTold) {
  const TemporaryFolder folder;
  Trace trace = two_ranks();
  for (TraceRank& rank : trace.ranks) {
    TraceOp norms = rank.ops.back();
    norms.collective->group_name = "norms";
    norms.name = "norms";
    norms.start += microseconds(40);
    if (rank.rank == 1) std::swap(norms.start, rank.ops.back().start);
    if (rank.rank == 1) std::swap(norms, rank.ops.back());
    rank.ops.push_back(norms);
  }
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", kRun);
  for (const std::string fidelity : {"cycle", "sampled"}) {
    const Ran ran = weft("run e.json -o out --json --fidelity " + fidelity, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_THAT(ran.output, HasSubstr("\"status\": \"deadlock\""));
    EXPECT_THAT(ran.output, HasSubstr("Deadlock: GPU 0 waits in collective"));
    EXPECT_THAT(ran.output, HasSubstr("for GPU 1, which waits in collective norms"));
  }
}

}  // namespace
}  // namespace weft
