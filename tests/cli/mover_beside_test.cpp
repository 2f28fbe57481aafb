// What a kernel feels beside a collective, by who moves it.
#include <fmt/format.h>

#include "cli/run/gather.h"
#include "tests/cli/both_fidelities.h"
#include "tests/cli/measured_mover.h"

namespace weft {
namespace {

using testing::all_reduce;
using testing::kUnits;
using testing::measure;
using testing::Measured;

// Blocks of which one fills a unit, busy for `us` without touching memory.
KernelDemand unit_blocks(std::uint32_t blocks, double us) {
  KernelDemand demand;
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {1024, 1, 1};
  demand.shape.registers_per_thread = 64;
  demand.extra_cycles_per_block = us * 1830;
  return demand;
}

TEST(Mover, AKernelAsWideAsTheGpuGetsASecondWaveOnlyBesideBlocksThatHoldUnits) {
  const double alone = 10;
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits, alone)}).kernel_us, 2 * alone, 0.2);
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits - 8, alone)}).kernel_us, alone, 0.2);
  for (const char* mover : {"copy_engine", "endpoint_engine", "near_memory"}) {
    RunConfig engines = all_reduce(mover);
    engines.system.gpu.engines->copy_engine.reduce_blocks = 4;
    const double with_engine = measure(engines, {unit_blocks(kUnits, alone)}).kernel_us;
    EXPECT_NEAR(with_engine, alone, 0.2) << mover;
  }
}

// Streams from memory on the units that a collective of 8 channels leaves free.
KernelDemand streaming() {
  KernelDemand demand = unit_blocks(kUnits - 8, 0);
  demand.reads = {{.base = 1 << 28, .bytes_per_block = 1 << 20}};
  demand.iterations = 64;
  demand.stages = 8;
  return demand;
}

TEST(Mover, ACollectiveThatWaitsTakesUnitsAndOneThatMovesTakesMemoryToo) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  config.system.gpu.hbm.bandwidth = gigabytes_per_second(600);
  const Time late = microseconds(400);
  const std::vector<KernelDemand> kernels{streaming()};
  RunConfig quiet = config;
  quiet.workload = CollectiveWorkload{CollectiveKind::all_reduce, Bytes(128)};
  quiet.collective.mover = Mover::endpoint_engine;
  const Measured alone = measure(quiet, kernels);
  const Measured waits = measure(config, kernels, late);
  const Measured moves = measure(config, kernels);
  ASSERT_LT(alone.kernel_us, 100);  // it has ended when the late one comes
  EXPECT_NEAR(waits.kernel_us / alone.kernel_us, 1, 0.01);
  EXPECT_GT(moves.kernel_us / alone.kernel_us, 1.05);
  const double added = moves.kernel_us - alone.kernel_us;
  const SlowdownByCause causes = attribute(moves.kernel, ClockDomain(config.system.gpu.clock), added);
  EXPECT_GT(causes.hbm + causes.cache, 0.9 * added);
  // As wide as the GPU, the waiting collective costs a wave of units, and memory nothing.
  KernelDemand wide = unit_blocks(kUnits, 10);
  const Measured wide_alone = measure(quiet, {wide});
  const Measured wide_waits = measure(config, {wide}, late);
  const double wave = wide_waits.kernel_us - wide_alone.kernel_us;
  EXPECT_NEAR(wave, 10, 0.3);
  const SlowdownByCause lost = attribute(wide_waits.kernel, ClockDomain(config.system.gpu.clock), wave);
  EXPECT_NEAR(lost.compute_units, wave, 0.05 * wave);
}

// What sharing a part costs is what goes when communication has that part for itself.
TEST(Mover, WhatIsBookedToAPartGoesWithAPrivateOne) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  config.system.gpu.hbm.bandwidth = gigabytes_per_second(600);
  RunConfig quiet = config;
  quiet.workload = CollectiveWorkload{CollectiveKind::all_reduce, Bytes(128)};
  quiet.collective.mover = Mover::endpoint_engine;
  const ClockDomain clock(config.system.gpu.clock);

  const double alone = measure(quiet, {streaming()}).kernel_us;
  const Measured shared = measure(config, {streaming()});
  const double added = shared.kernel_us - alone;
  const SlowdownByCause causes = attribute(shared.kernel, clock, added);
  EXPECT_GT(causes.hbm, 0.5 * added);
  config.private_parts = {.hbm = true};
  const double without_hbm = shared.kernel_us - measure(config, {streaming()}).kernel_us;
  EXPECT_NEAR(without_hbm, causes.hbm, 0.2 * added);
  config.private_parts = {.compute_units = true};
  EXPECT_NEAR(measure(config, {streaming()}).kernel_us, shared.kernel_us, 0.1 * added);
  config.private_parts = {.compute_units = true, .cache = true, .hbm = true};
  EXPECT_NEAR(measure(config, {streaming()}).kernel_us, alone, 0.02 * alone);

  // Two waves beside blocks that hold units, one without.
  config.private_parts = {};
  const Measured wide = measure(config, {unit_blocks(kUnits, 10)});
  EXPECT_NEAR(attribute(wide.kernel, clock, wide.kernel_us - 10).compute_units, 10, 0.3);
  config.private_parts = {.compute_units = true};
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits, 10)}).kernel_us, 10, 0.3);
}

// By sender's stores or by receiver's loads.
class FenceAtAKernelsEnd : public ::testing::TestWithParam<bool> {};

TEST_P(FenceAtAKernelsEnd, WaitsForWhatIsUnderWayToOtherGpus) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.system.collectives.ring.receiver_reads = GetParam();
  config.collective.channels = 8;
  const std::vector<KernelDemand> small{unit_blocks(1, 22)};  // ends while data moves
  config.system.gpu.sync_domains = 4;
  const double alone = measure(config, small).kernel_us;
  EXPECT_NEAR(alone, 22, 0.1);
  config.system.gpu.sync_domains = 1;
  const Measured fenced = measure(config, small);
  EXPECT_GT(fenced.kernel_us, alone + 0.5);  // a way to another GPU and back
  EXPECT_LT(fenced.kernel_us, alone + 5);
  EXPECT_NEAR(attribute(fenced.kernel, ClockDomain(config.system.gpu.clock), fenced.kernel_us - alone).links,
              fenced.kernel_us - alone, 0.05);
  config.private_parts = {.links = true};
  EXPECT_NEAR(measure(config, small).kernel_us, alone, 0.01);
  // While the collective waits for a late rank, nothing is under way.
  config.private_parts = {};
  EXPECT_NEAR(measure(config, {unit_blocks(1, 100)}, microseconds(400)).kernel_us, 100, 0.1);
  // Another kernel of the same graph comes behind it; the last one of the graph has the fence.
  config.host.cuda_graph = true;
  EXPECT_NEAR(measure(config, {unit_blocks(1, 22), unit_blocks(1, 1)}).kernel_us, alone, 0.01);
  double most = 0;
  for (const double us : {24.0, 25.0, 26.0})
    most = std::max(most, measure(config, {unit_blocks(1, us)}).kernel_us - us);
  EXPECT_GT(most, 0.5);  // whatever is under way when it ends
}

INSTANTIATE_TEST_SUITE_P(Mover, FenceAtAKernelsEnd, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Loads" : "Stores"; });

// Sums that come back from the switch are answers to loads like any others.
TEST(Mover, AKernelsEndWaitsForSumsFromTheSwitchAndGoesOn) {
  for (const InSwitchForm form : {InSwitchForm::pull, InSwitchForm::push}) {
    for (const bool registered : {false, true}) {
      if (form == InSwitchForm::push && !registered) continue;
      RunConfig config = all_reduce("compute_units", "in_switch", registered);
      config.system.collectives.in_switch.form = form;
      const std::vector<KernelDemand> small{unit_blocks(1, 32), unit_blocks(1, 35), unit_blocks(1, 90)};
      config.system.gpu.sync_domains = 4;
      EXPECT_NEAR(measure(config, small).kernel_us, 32, 0.1);
      config.system.gpu.sync_domains = 1;
      const double fenced = measure(config, small).kernel_us;
      EXPECT_GT(fenced, 32.5) << registered;
      EXPECT_LT(fenced, 42) << registered;
    }
  }
}

// Whatever moves the data: what was issued is answered, so kernels and the collective come to their end.
TEST(Mover, AKernelsEndIsReachedBesideAnyCollective) {
  std::vector<std::pair<std::string, std::string>> ways;
  for (const char* algorithm : {"ring", "tree", "double_binary_tree", "halving_doubling", "direct", "in_switch"})
    ways.emplace_back("compute_units", algorithm);
  for (const char* mover : {"copy_engine", "endpoint_engine", "near_memory"}) ways.emplace_back(mover, "auto");
  for (const auto& [mover, algorithm] : ways) {
    RunConfig config = all_reduce(mover, algorithm);
    config.system.gpu.sync_domains = 1;
    const Measured measured = measure(config, {unit_blocks(1, 15), unit_blocks(1, 25), unit_blocks(1, 35)});
    EXPECT_GE(measured.kernel_us, 15 - 1e-9) << mover << ' ' << algorithm;
    EXPECT_LT(measured.kernel_us, 30) << mover << ' ' << algorithm;
  }
}

// What a NIC reads and sends is under way long after units have stored it.
TEST(Mover, AKernelsEndDoesNotWaitForTheNic) {
  const auto forward = [](std::uint32_t domains) {
    return iteration(run_one(fmt::format(R"({{"system": {{"base": "dgx-a100-cluster",
      "gpu": {{"compute_units": 24, "sync_domains": {}}}, "network": {{"cluster": {{"gpus_per_node": 1, "nics_per_node": 1}}}}}},
      "gpus": 2, "workload": {{"model": "attention", "sequence": 512, "hidden": 1024, "heads": 8, "causal": true}},
      "scheme": {{"name": "ring_attention", "split": "striped"}}}})",
                                         domains),
                             "cycle"),
                     "forward_s");
  };
  EXPECT_NEAR(forward(1) / forward(4), 1, 0.01);
}

// What a block of LL moves is limited by instructions that wait for each other: it is always at it, and yet a kernel's
// blocks on its unit get the pipes.
TEST(Mover, FlagsLeaveThePipesToKernels) {
  constexpr const char* kStep = R"({{"system": {{"base": "dgx-a100", "gpu": {{"compute_units": 24}}}}, "gpus": 4,
    "workload": {{"model": "attention", "sequence": 256, "hidden": 512, "heads": 4}},
    "scheme": {{"name": "data_parallel", "bucket_MiB": 1}},
    "all_reduce": {{"algorithm": "double_binary_tree", "channels": 12, "protocol": "{}"}}}})";
  for (const char* protocol : {"LL", "LL128"}) {
    const Json result = run_one(fmt::format(kStep, protocol), "cycle");
    EXPECT_GT(iteration(result, "backward_slowdown"), 1.05) << protocol;
    EXPECT_LT(iteration(result, "backward_slowdown"), 1.4) << protocol;
  }
}

}  // namespace
}  // namespace weft
