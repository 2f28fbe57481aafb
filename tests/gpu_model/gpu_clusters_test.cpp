// Thread-block clusters: GPCs, and placement of all blocks of a cluster or none.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/gpu_model/small_kernels.h"

namespace weft {
namespace {

// Two GPCs of four units.
GpuSpec two_gpcs() {
  GpuSpec spec = small_gpu();
  spec.compute_units = 8;
  spec.gpcs = 2;
  spec.max_cluster_blocks = 8;
  return spec;
}

TEST(Clusters, GpcsAreAsEvenAsPairsOfUnitsCanBe) {
  GpuSpec h100 = small_gpu();
  h100.compute_units = 132;
  h100.gpcs = 8;
  std::vector<std::uint32_t> units;
  for (std::uint32_t gpc = 0; gpc < 8; ++gpc) {
    units.push_back(first_unit_of_gpc(h100, gpc + 1) - first_unit_of_gpc(h100, gpc));
  }
  EXPECT_EQ(units, (std::vector<std::uint32_t>{16, 16, 16, 18, 16, 16, 16, 18}));
}

// Two GPCs of two pairs of units, and a pair without a GPC: single blocks leave whole GPCs to clusters.
GpuSpec uneven_gpcs() {
  GpuSpec spec = two_gpcs();
  spec.compute_units = 10;
  spec.gpc_units = {4, 4, 2};
  spec.gpcs = 3;
  return spec;
}

TEST(Clusters, GpcsMayBeUneven) {
  EXPECT_EQ(first_unit_of_gpc(uneven_gpcs(), 2), 8U);
  EXPECT_EQ(first_unit_of_gpc(uneven_gpcs(), 3), 10U);
  EXPECT_EQ(units_in_order(uneven_gpcs()), (std::vector<std::uint32_t>{8, 9, 0, 4, 2, 6, 1, 5, 3, 7}));
}

TEST(Clusters, SingleBlocksFillPairsWithoutAGpcFirst) {
  // Two blocks hold the pair, and each of two more takes a GPC its room for clusters of four.
  const auto waves = [](std::uint32_t held) {
    AloneGpu alone(uneven_gpcs(),
                   program_of({kernel_op(whole_units(held, 10'000)), kernel_op(whole_units(8, 1'000, 4), 1)}, 2));
    alone.run();
    return alone.duration(1) / 1'000;
  };
  EXPECT_NEAR(waves(2), 1, 0.05);
  EXPECT_NEAR(waves(3), 2, 0.05);
}

TEST(Clusters, OfAnotherGpuAreCutToWhatFits) {
  EXPECT_EQ(cluster_that_fits(two_gpcs(), whole_units(16, 0, 8).shape), 4U);
  EXPECT_EQ(cluster_that_fits(two_gpcs(), whole_units(12, 0, 6).shape), 3U);
  EXPECT_EQ(cluster_that_fits(small_gpu(), whole_units(16, 0, 8).shape), 1U);
}

TEST(Clusters, AllBlocksOfAClusterStartTogetherOrNone) {
  // One unit is held for long: its GPC has no room for four whole units, and the other one takes all clusters in turn.
  const auto waves = [](std::uint32_t cluster) {
    const KernelDemand holds = whole_units(1, 10'000);
    AloneGpu alone(two_gpcs(), program_of({kernel_op(holds), kernel_op(whole_units(12, 1'000, cluster), 1)}, 2));
    alone.run();
    return alone.duration(1) / 1'000;
  };
  EXPECT_NEAR(waves(1), 2, 0.05);  // on seven units
  EXPECT_NEAR(waves(2), 2, 0.05);  // 6 of them
  EXPECT_NEAR(waves(4), 3, 0.05);
}

TEST(Clusters, AFreedGpcTakesTheNextCluster) {
  AloneGpu alone(two_gpcs(), program_of({kernel_op(whole_units(40, 1'000, 4))}));
  alone.run();
  EXPECT_NEAR(alone.duration(0), 5'000, 60);
}

TEST(Clusters, SmallBlocksOfAClusterShareUnits) {
  KernelDemand demand = grid_of(8);  // eight blocks of 256 threads fit on a unit
  demand.shape.cluster_blocks = 8;
  demand.extra_cycles_per_block = 1'000;
  AloneGpu alone(two_gpcs(), program_of({kernel_op(demand)}));
  alone.run();
  EXPECT_NEAR(alone.duration(0), 2'000, 30);  // two on each of four units
}

TEST(Clusters, WhatIsFetchedForAllComesToEach) {
  // 128 lines that four blocks read, in the L2 from the first time on.
  const auto again = [](std::uint32_t shared_by) {
    GpuSpec gpu = two_gpcs();
    gpu.compute_unit.l2_bytes_per_cycle = 32;
    KernelDemand demand = whole_units(4, 0, 4);
    demand.reads = {{.base = 0, .bytes_per_block = 128 * 128, .divisor = 4, .shared_by = shared_by}};
    demand.bulk_loads = true;
    AloneGpu alone(gpu, program_of({kernel_op(demand), kernel_op(demand)}));
    alone.run();
    return alone.duration(1);
  };
  const double by_port = 128 * 128 / 32;
  EXPECT_NEAR(again(1), by_port + kHit, 60);
  EXPECT_NEAR(again(4), by_port + kHit, 60);  // of a part alone it would be a quarter
}

TEST(Clusters, RefusesWhatDoesNotFit) {
  const auto made = [](const KernelDemand& demand) { return KernelProgram(demand, two_gpcs(), "k"); };
  EXPECT_NO_THROW(made(whole_units(8, 0, 4)));
  EXPECT_THROW(made(whole_units(10, 0, 5)), InputError);  // a GPC has four units
  EXPECT_THROW(made(whole_units(6, 0, 4)), InputError);   // does not divide the grid
  EXPECT_THROW(made(whole_units(6, 0, 0)), InputError);
  EXPECT_THROW(KernelProgram(whole_units(8, 0, 2), small_gpu(), "k"), InputError);  // a GPU without clusters
}

}  // namespace
}  // namespace weft
