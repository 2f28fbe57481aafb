// Whose blocks get the free units.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_kernels.h"

namespace weft {
namespace {

double began(const Gpu& gpu, std::size_t op) {
  return static_cast<double>(gpu.times()[op].began()) / static_cast<double>(kCycle);
}

// Blocks that only compute for `computed` cycles.
KernelDemand blocks_of(std::uint32_t blocks, std::uint32_t threads, double computed) {
  KernelDemand demand = grid_of(blocks, threads);
  demand.extra_cycles_per_block = computed;
  return demand;
}

// Units for one block of 1024 threads with room for one of 512 beside it.
GpuSpec roomy_gpu(bool in_order) {
  GpuSpec spec = small_gpu();
  spec.compute_unit.max_threads = 1536;
  spec.launch.blocks_in_order = in_order;
  return spec;
}

TEST(Distributor, HigherPriorityTakesTheFreeUnitFirst) {
  // A kernel of three waves; a small one comes later on a stream of higher priority.
  Program program = program_of({kernel_op(whole_units(12, 10'000)), kernel_op(whole_units(4, 100), 1)}, 2);
  program.priorities = {0, 5};
  AloneGpu alone(small_gpu(), program);
  const Gpu& gpu = alone.run();
  EXPECT_LT(end_of(gpu, 1), start_of(gpu, 0) + 10'000 + 200);
  program.priorities = {0, 0};
  AloneGpu equal(small_gpu(), program);
  EXPECT_GT(end_of(equal.run(), 1), start_of(gpu, 0) + 30'000);
}

// Its start in the stream is when it could have begun; profilers show the other.
TEST(Distributor, AKernelBehindAnotherOnesBlocksBeginsWithItsFirstBlock) {
  AloneGpu alone(small_gpu(), program_of({kernel_op(whole_units(12, 10'000)), kernel_op(whole_units(4, 100), 1)}, 2));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(gpu.times()[0].began(), gpu.times()[0].start);
  EXPECT_LT(start_of(gpu, 1), start_of(gpu, 0) + 5'000);
  EXPECT_GE(gpu.times()[1].began(), gpu.times()[0].start + 30'000 * kCycle);
  EXPECT_LT(gpu.times()[1].end - gpu.times()[1].began(), 1'000 * kCycle);
}

// In three waves of the first kernel there is room for the second one all the time.
TEST(Distributor, BlocksWaitUntilAllOfThoseBeforeThemHaveAPlace) {
  Program program = program_of({kernel_op(blocks_of(12, 1024, 10'000)), kernel_op(blocks_of(4, 512, 100), 1)}, 2);
  AloneGpu ordered(roomy_gpu(true), program);
  const Gpu& gpu = ordered.run();
  EXPECT_NEAR(began(gpu, 1) - start_of(gpu, 0), 20'000, 20);
  AloneGpu free(roomy_gpu(false), program);
  const Gpu& other = free.run();
  EXPECT_NEAR(began(other, 1), start_of(other, 1), 5);
}

TEST(Distributor, AHigherPriorityDoesNotWaitForBlocksOfALowerOne) {
  Program program = program_of({kernel_op(blocks_of(12, 1024, 10'000)), kernel_op(blocks_of(4, 512, 100), 1)}, 2);
  program.priorities = {0, 1};
  AloneGpu alone(roomy_gpu(true), program);
  const Gpu& gpu = alone.run();
  EXPECT_NEAR(began(gpu, 1), start_of(gpu, 1), 5);
}

// Nor does anything get past one that is waiting for a unit of its own.
TEST(Distributor, BlocksOfAHigherPriorityThatWaitHoldUpLowerOnes) {
  Program program = program_of(
      {kernel_op(blocks_of(4, 1024, 10'000)), kernel_op(whole_units(1, 100), 1), kernel_op(blocks_of(4, 512, 100), 2)},
      3);
  program.ops.edit()[0].kernel.shape.shared_memory_bytes = 16 << 10;
  program.priorities = {0, 1, 0};
  AloneGpu alone(roomy_gpu(true), program);
  const Gpu& gpu = alone.run();
  EXPECT_GE(began(gpu, 1), start_of(gpu, 0) + 10'000);
  EXPECT_GE(began(gpu, 2), began(gpu, 1));
}

// Three of four units are held, with room for small blocks; those before go to the fourth, one after another.
TEST(Distributor, WhoHasWaitedForOthersGoesToAllUnits) {
  const ScriptedKernel held = waiting_block(1, 3, 1024);  // for ever
  AloneGpu alone(
      roomy_gpu(true),
      program_of({collective_op(2), kernel_op(blocks_of(3, 1024, 10'000)), kernel_op(blocks_of(4, 512, 5'000), 1)}, 3));
  alone.script(0, &held, 1);
  const Gpu& gpu = alone.run();
  EXPECT_NEAR(began(gpu, 2) - start_of(gpu, 1), 20'000, 20);
  EXPECT_NEAR(end_of(gpu, 2) - start_of(gpu, 1), 35'000, 50);  // one is beside the last of the others
}

// What is stored to an L2 that waits for HBM is under way, of which a unit has only so much: blocks that store 16 MiB
// do not leave 4 units to others, with 32 KiB each under way, long before HBM has it.
TEST(Distributor, BlocksThatStoreStayUntilHbmIsNearlyThrough) {
  KernelDemand stores = grid_of(8192);
  stores.writes = {{.base = 1 << 20, .bytes_per_block = 2 << 10}};
  stores.extra_cycles_per_block = 30;
  GpuSpec spec = small_gpu();
  spec.compute_unit.l2_bytes_per_cycle = spec.l2.bytes_per_cycle = 256;
  AloneGpu alone(spec, program_of({kernel_op(stores), kernel_op(whole_units(4, 100), 1)}, 2));
  const Gpu& gpu = alone.run();
  const double bound = (16 << 20) / 128.0;  // bytes a cycle
  EXPECT_GT(end_of(gpu, 0) - start_of(gpu, 0), 0.9 * bound);
  EXPECT_GT(began(gpu, 1) - start_of(gpu, 0), 0.8 * bound);
}

// All that a unit may have under way waits for HBM behind what three others store, and nothing of it is to come back
// any more when the next block wants to store: the unit looks when one is done.
TEST(Distributor, AUnitWhoseStoresAllWaitForHbmGoesOn) {
  KernelDemand others = whole_units(3, 30);
  others.writes = {{.base = 1 << 20, .bytes_per_block = 512 << 10}};
  KernelDemand stores = whole_units(2, 300);  // longer than an answer takes
  stores.writes = {{.base = 8 << 20, .bytes_per_block = 8 << 10}};
  GpuSpec spec = small_gpu();
  spec.hbm.bandwidth = gigabytes_per_second(4 * 4);
  spec.compute_unit.max_outstanding_stores = 64;
  AloneGpu alone(spec, program_of({kernel_op(others), kernel_op(whole_units(1, 20000), 1), kernel_op(stores, 1)}, 2));
  const Gpu& gpu = alone.run();
  EXPECT_GT(end_of(gpu, 2), start_of(gpu, 2) + 2 * 300);
  EXPECT_LT(end_of(gpu, 2), end_of(gpu, 0));
}

// One that waits for its turn keeps no other one from using a copy engine.
TEST(Distributor, CopyEnginesKnowNoTurns) {
  const ScriptedKernel copy = host_copy(32);
  ProgramOp op;
  op.kind = ProgramOpKind::copy;
  op.stream = StreamId{1};
  AloneGpu alone(roomy_gpu(true), program_of({kernel_op(blocks_of(12, 1024, 10'000)), op}, 2));
  alone.script(1, &copy, 0);
  const Gpu& gpu = alone.run();
  EXPECT_LT(end_of(gpu, 1), start_of(gpu, 0) + 5'000);
}

}  // namespace
}  // namespace weft
