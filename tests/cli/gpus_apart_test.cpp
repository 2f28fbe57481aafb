// GPUs that are simulated one by one and drift apart.
#include "cli/sampled/gpus_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/sampled/observed_regime.h"
#include "cli/sampled/regime_lab.h"
#include "tests/cli/both_fidelities.h"
#include "tests/cli/kernel_beside_collective.h"

namespace weft {
namespace {

using testing::ElementsAre;

using Apart = std::vector<SubCycle>;

TEST(GpusApart, WhoIsLateBeginsLateButHostsGoOnTogether) {
  const HostState state{OpId{3}, 5, {0, 70}, 100, 0};
  const std::vector<HostState> states = states_of(state, {-20, 80, -60});
  ASSERT_EQ(states.size(), 3U);
  EXPECT_THAT(states[0].arrivals, ElementsAre(40, 130));
  EXPECT_THAT(states[1].arrivals, ElementsAre(140, 140));
  EXPECT_THAT(states[2].arrivals, ElementsAre(0, 130));
  EXPECT_EQ(states[0].next_step, 160);
  EXPECT_EQ(states[1].next_step, 160);
  EXPECT_EQ(states[0].first, state.first);
}

TEST(GpusApart, FewBeginningsOfAStretchAreSimulated) {
  const SubCycle us = cycles(std::int64_t{1500});
  KnownBeginnings known;
  EXPECT_EQ(known.like("a", {}), Apart());
  EXPECT_EQ(known.like("a", {us / 10, -us / 10}), Apart());  // as if they were together
  EXPECT_EQ(known.like("a", {3 * us, -3 * us}), (Apart{3 * us, -3 * us}));
  EXPECT_EQ(known.like("a", {-3 * us, 3 * us}), (Apart{-3 * us, 3 * us}));
  EXPECT_EQ(known.like("a", {9 * us, -9 * us}), (Apart{9 * us, -9 * us}));
  EXPECT_EQ(known.like("a", {20 * us, -20 * us}), (Apart{9 * us, -9 * us}));  // the nearest
  EXPECT_EQ(known.like("b", {20 * us, -20 * us}), (Apart{20 * us, -20 * us}));
}

// Three GPUs in a ring, a kernel of so many blocks and a collective beside it.
Regime beside(std::uint32_t blocks, std::int64_t bytes, CollectiveKind kind, const Apart& apart) {
  const RunConfig config = small_config(3, "ring");
  const std::vector<Program> programs = programs_beside(config, blocks_of(blocks, 10, 32 << 10), kind, bytes);
  const Scripts scripts(config, programs);
  RegimeLab lab(config, programs, &scripts);
  return lab.company({OpId{0}, 2, {0, 0}, {}}, false, apart);
}

double us(SubCycle time) { return static_cast<double>(time) / static_cast<double>(cycles(std::int64_t{1830})); }

// At 1.83 GHz two are 10 us before the mean, one is 20 after it.
const Apart kApart{-cycles(std::int64_t{18300}), -cycles(std::int64_t{18300}), cycles(std::int64_t{36600})};

TEST(GpusApart, WhoIsLateIsSoAfterAKernel) {
  const Regime regime = beside(23 * 40, 1 << 20, CollectiveKind::shift, kApart);
  ASSERT_EQ(regime.apart.size(), 3U);
  for (std::size_t g = 0; g < 3; ++g) EXPECT_NEAR(us(regime.apart[g]), us(kApart[g]), 2) << g;
}

// A window of one wave is never quite one on each GPU, but all leave out as many waves.
TEST(GpusApart, WhoIsLateIsSoAfterWavesThatAreLeftOut) {
  const Regime regime = beside(24 * 100, 1 << 20, CollectiveKind::all_reduce, kApart);
  ASSERT_EQ(regime.apart.size(), 3U);
  for (std::size_t g = 0; g < 3; ++g) EXPECT_NEAR(us(regime.apart[g]), us(kApart[g]), 2) << g;
}

TEST(GpusApart, AnAllReduceWaitsForTheLast) {
  const Regime together = beside(23, 100000, CollectiveKind::all_reduce, {});
  const Regime regime = beside(23, 100000, CollectiveKind::all_reduce, kApart);
  ASSERT_EQ(regime.apart.size(), 3U);
  for (const SubCycle one : regime.apart) EXPECT_NEAR(us(one), 0, 2);
  EXPECT_NEAR(us(regime.operations[1].began[2]), us(kApart[2]), 2);
  EXPECT_NEAR(us(regime.operations[1].ended[2]), 0, 2);
  // In the mean they wait for as long as the last one comes after the mean.
  EXPECT_NEAR(us(regime.operations[1].duration - together.operations[1].duration), us(kApart[2]), 2);
}

// While the second GPU comes to the end of its first kernel, the first one has gone on.
TEST(GpusApart, WhatOnlyTheFirstHasEndedHasNot) {
  const RunConfig config = small_config(2, "ring");
  std::vector<Program> programs = programs_beside(config, blocks_of(23, 10, 32 << 10), CollectiveKind::shift, 4096);
  for (Program& program : programs) {
    program.ops.edit().pop_back();
    program.ops.push_back(program.ops.front());
  }
  const Scripts scripts(config, programs);
  const HostState state{OpId{0}, 2, {0, 0}, {}};
  const std::vector<HostState> states = states_of(state, {-cycles(std::int64_t{200000}), cycles(std::int64_t{200000})});
  std::vector<GpuWork> work{scripts.work(0), scripts.work(1)};
  for (std::size_t g = 0; g < 2; ++g) work[g].from = &states[g];
  Machine machine(config.system, work);
  machine.run_until_quiet({}, 1);
  ASSERT_GE(machine.gpu(0).times()[1].end, 0);
  ASSERT_LT(machine.gpu(1).times()[1].end, 0);
  const Regime regime = observed_regime(machine, programs.front(), state, 2, Waits::never);
  EXPECT_GT(us(regime.operations[0].duration), 5);
  EXPECT_EQ(regime.operations[1].duration, -1);
}

// A shift between two lets who came first wait, get its part last and end last, kernel after kernel.
TEST(GpusApart, DriftIsCarriedFromStretchToStretch) {
  const auto [cycle, sampled] = run_both(R"({"system": "dgx1-v100", "gpus": 4, "workload": {"model": "attention",
    "sequence": 2048, "hidden": 1024, "heads": 16}, "scheme": {"name": "megatron"},
    "all_reduce": {"algorithm": "ring"}})");
  const double time = iteration(cycle, "time_s");
  EXPECT_NEAR(iteration(sampled, "time_s") / time, 1, 0.015);
  EXPECT_NEAR((iteration(sampled, "communication_exposed_s") - iteration(cycle, "communication_exposed_s")) / time, 0,
              0.02);
  // From the first member's start to the last one's end; with all beginning together they were 20 % shorter.
  const auto under_way = [](const Json& result) {
    double sum = 0;
    for (const Json& row : result.at("collectives")) {
      sum += row.at("end_s").get<double>() - row.at("start_s").get<double>();
    }
    return sum;
  };
  EXPECT_NEAR(under_way(sampled) / under_way(cycle), 1, 0.06);
  // The last GPU ends the iteration with its part of the last collective.
  EXPECT_NEAR(sampled.at("collectives").back().at("end_s").get<double>() / iteration(sampled, "time_s"), 1, 1e-9);
}

}  // namespace
}  // namespace weft
