// Kernels beside collectives in samples, against every GPU in detail.
#include "cli/sampled/steady_kernels.h"

#include <gtest/gtest.h>

#include "cli/sampled/regime_lab.h"
#include "tests/cli/kernel_beside_collective.h"

namespace weft {
namespace {

void expect_as_in_detail(const RunConfig& config, const KernelDemand& kernel, CollectiveKind kind, std::int64_t bytes,
                         double share) {
  const std::vector<Program> programs = programs_beside(config, kernel, kind, bytes);
  const Scripts scripts(config, programs);
  std::vector<GpuWork> work;
  const HostState state{OpId{0}, 2, {0, 0}, {}};
  for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
  for (GpuWork& one : work) one.from = &state;
  Machine machine(config.system, work, scripts.multicast_groups());
  machine.run_until_quiet({}, 1);
  RegimeLab lab(config, programs, &scripts);
  const Regime regime = lab.company(state, false);
  std::int64_t transactions = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    transactions += machine.gpu(g).statistics().memory_transactions;
  }
  ASSERT_EQ(regime.operations.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const OpTimes& times = machine.gpu(0).times()[i];
    EXPECT_NEAR(static_cast<double>(regime.operations[i].duration) / static_cast<double>(times.end - times.start), 1,
                0.02)
        << i;
  }
  EXPECT_NEAR(static_cast<double>(regime.hbm_read_bytes) / static_cast<double>(machine.gpu(0).hbm_bytes().read), 1,
              0.05);
  EXPECT_LT(static_cast<double>(lab.memory_transactions()), share * static_cast<double>(transactions));
}

TEST(SteadyKernels, AKernelGoesOnWithTheCollectiveBesideIt) {
  const RunConfig config = small_config(2, "switched");
  expect_as_in_detail(config, blocks_of(23 * 40, 10, 32 << 10), CollectiveKind::shift, 12 << 20, 0.55);
}

// Of what is left out, only the end is told to an L2 of 1.25 MiB; the rest moves as much.
TEST(SteadyKernels, WhatAnL2IsNotToldOfMovesAsMuch) {
  const RunConfig config = small_config(2, "switched", kL2 / 40);
  expect_as_in_detail(config, blocks_of(23 * 100, 10, 128 << 10), CollectiveKind::shift, 24 << 20, 0.55);
}

TEST(SteadyKernels, AKernelGoesOnByItselfOnceTheCollectiveHasEnded) {
  const RunConfig config = small_config(2, "switched");
  expect_as_in_detail(config, blocks_of(24 * 100, 10, 32 << 10), CollectiveKind::shift, 2 << 20, 0.35);
}

// Warps have handed all to the NIC and wait, its link is busy for most of the time.
TEST(SteadyKernels, ANicGoesOnBesideAKernelWhileWarpsWait) {
  RunConfig config = small_config(2, "nodes");
  config.collective.channels = 8;
  expect_as_in_detail(config, blocks_of(16 * 60, 10, 32 << 10), CollectiveKind::shift, 12 << 20, 0.9);
}

// Each for itself, and their clocks together.
TEST(SteadyKernels, KernelsOfGpusThatAreAllThereGoOn) {
  const RunConfig config = small_config(3, "ring");
  expect_as_in_detail(config, blocks_of(24 * 80, 10, 32 << 10), CollectiveKind::shift, 2 << 20, 0.7);
}

}  // namespace
}  // namespace weft
