// The L1 of a unit, in a GPU that has one unit.
#include <gtest/gtest.h>

#include "gpu_model/gpu.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

GpuSpec one_unit_with_l1() {
  GpuSpec spec = small_gpu();
  spec.compute_units = 1;
  spec.compute_unit.l1_bytes = 128 << 10;
  spec.compute_unit.l1_latency_cycles = 30;
  return spec;
}

TEST(L1, ServesWhatABlockOfTheSameKernelLoaded) {
  KernelDemand demand = grid_of(2);  // one after the other on the one unit
  demand.shape.shared_memory_bytes = 64 << 10;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 128, .modulo = 1}};
  AloneGpu alone(one_unit_with_l1(), program_of({kernel_op(demand), kernel_op(demand)}));
  alone.run();
  EXPECT_EQ(alone.duration(0), kBlockStart + kHit + kHbm + kBlockStart + 30);
  EXPECT_EQ(alone.duration(1), kBlockStart + kHit + kBlockStart + 30);  // the L1 forgets between kernels
}

// A reservation, not a second request: both blocks go on when the line has come.
TEST(L1, ALoadOfALineOnItsWayWaitsForIt) {
  KernelDemand demand = grid_of(2, 32);
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 128, .modulo = 1}};
  AloneGpu alone(one_unit_with_l1(), program_of({kernel_op(demand)}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(gpu.statistics().memory_transactions, 1);
  EXPECT_EQ(alone.duration(0), kBlockStart + kHit + kHbm);
}

TEST(L1, HoldsSectors) {
  KernelDemand demand = grid_of(4, 32);  // a sector each, of one line
  demand.shape.shared_memory_bytes = 64 << 10;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 32, .modulo = 4}};
  AloneGpu alone(one_unit_with_l1(), program_of({kernel_op(demand)}));
  EXPECT_EQ(alone.run().statistics().memory_transactions, 4);
  demand.reads[0].modulo = 1;
  AloneGpu same(one_unit_with_l1(), program_of({kernel_op(demand)}));
  EXPECT_EQ(same.run().statistics().memory_transactions, 1);
}

TEST(L1, StoresPassItBy) {
  KernelDemand demand = grid_of(8, 32);
  demand.writes = {{.base = 1 << 20, .bytes_per_block = 128, .modulo = 1}};
  AloneGpu alone(one_unit_with_l1(), program_of({kernel_op(demand)}));
  const Gpu& gpu = alone.run();
  EXPECT_TRUE(gpu.done());
  EXPECT_EQ(gpu.statistics().memory_transactions, 8);
  EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, 0);
}

TEST(L1, AnswersALineACycle) {
  KernelDemand demand = grid_of(100, 1024);
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 128 * 64, .modulo = 1}};
  AloneGpu alone(one_unit_with_l1(), program_of({kernel_op(demand)}));
  alone.run();
  EXPECT_NEAR(alone.duration(0), 100 * 64, 500);
}

}  // namespace
}  // namespace weft
