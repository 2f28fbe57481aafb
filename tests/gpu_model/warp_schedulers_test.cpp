// Warp schedulers and pipes of a unit: policies, issue slots, sub-partitions, barriers, rounds in flight.
#include "gpu_model/warp_schedulers.h"

#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

GpuSpec one_unit() {
  GpuSpec spec = small_gpu();
  spec.compute_units = 1;
  return spec;
}

// One block of rounds that only compute, `computed` cycles in all.
KernelDemand computing(std::uint32_t rounds, double computed, std::uint32_t threads = 256) {
  KernelDemand demand = grid_of(1, threads);
  demand.iterations = rounds;
  demand.stages = rounds;
  demand.extra_cycles_per_block = computed;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = std::uint64_t{rounds} * 128}};
  return demand;
}

// Ends of two kernels that start together on one unit, in cycles after the start.
std::pair<double, double> side_by_side(const GpuSpec& spec, const KernelDemand& first, const KernelDemand& second) {
  ProgramOp a = kernel_op(first);
  ProgramOp b = kernel_op(second, 1);
  a.start_delay = spec.launch.host_issue;  // the second is issued that much later
  AloneGpu alone(spec, program_of({a, b}, 2));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(gpu.times()[0].start, gpu.times()[1].start);
  return {alone.duration(0), alone.duration(1)};
}

double alone(const GpuSpec& spec, const KernelDemand& demand) {
  AloneGpu gpu(spec, program_of({kernel_op(demand)}));
  gpu.run();
  return gpu.duration(0);
}

constexpr double kLoad = 320;  // first lines from HBM, and a bit

TEST(WarpSchedulers, GreedyThenOldestFinishesTheOldBlockFirst) {
  const auto [first, second] = side_by_side(one_unit(), computing(100, 10'000), computing(100, 10'000));
  EXPECT_NEAR(first, 10'000, 2 * kLoad);
  EXPECT_NEAR(second, 20'000, 2 * kLoad);
}

TEST(WarpSchedulers, RoundRobinLetsBothEndLate) {
  GpuSpec spec = one_unit();
  spec.compute_unit.policy = WarpPolicy::round_robin;
  const auto [first, second] = side_by_side(spec, computing(100, 10'000), computing(100, 10'000));
  EXPECT_NEAR(first, 20'000, 2 * kLoad);
  EXPECT_NEAR(second, 20'000, 2 * kLoad);
}

TEST(WarpSchedulers, ManySmallInstructionsAreBoundByIssue) {
  KernelDemand demand = grid_of(4 * 8 * 4);  // full waves of four units with eight blocks
  demand.iterations = 10;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 1280}};
  demand.flops[static_cast<std::size_t>(Pipe::fp32)] = 4 * 64 * 50'000.0;  // of four units
  EXPECT_NEAR(alone(small_gpu(), demand), 50'000, 1'500);
  demand.instructions = 4 * 4 * 100'000.0;  // four units with four schedulers, one a cycle
  EXPECT_NEAR(alone(small_gpu(), demand), 100'000, 1'500);
}

TEST(WarpSchedulers, KernelsOnDifferentPipesOverlapAndShareIssueSlots) {
  KernelDemand tensor = computing(50, 0);
  tensor.flops[static_cast<std::size_t>(Pipe::tensor_fp16)] = 512 * 10'000;
  KernelDemand fp32 = computing(50, 0);
  fp32.flops[static_cast<std::size_t>(Pipe::fp32)] = 64 * 10'000;
  const auto [a, b] = side_by_side(one_unit(), tensor, fp32);
  EXPECT_NEAR(a, 10'000, 2 * kLoad);
  EXPECT_NEAR(b, 10'000, 2 * kLoad);
  // Each issues for three quarters of its time: together they are bound by that.
  tensor.instructions = fp32.instructions = 4 * 7'500;
  const auto [c, d] = side_by_side(one_unit(), tensor, fp32);
  EXPECT_NEAR(std::max(c, d), 15'000, 3 * kLoad);
}

TEST(WarpSchedulers, BothTensorFormatsShareOnePipe) {
  KernelDemand fp16 = computing(50, 0);
  fp16.flops[static_cast<std::size_t>(Pipe::tensor_fp16)] = 512 * 10'000;
  KernelDemand tf32 = computing(50, 0);
  tf32.flops[static_cast<std::size_t>(Pipe::tensor_tf32)] = 256 * 10'000;
  const auto [a, b] = side_by_side(one_unit(), fp16, tf32);
  EXPECT_NEAR(std::max(a, b), 20'000, 2 * kLoad);
}

TEST(WarpSchedulers, ABlockOfOneWarpHasOneSubPartition) {
  KernelDemand demand = computing(10, 0, 32);
  demand.flops[static_cast<std::size_t>(Pipe::fp32)] = 64 * 1'000;
  EXPECT_NEAR(alone(one_unit(), demand), 4'000, 2 * kLoad);
  demand.shape.grid[0] = 4;  // one on each
  demand.flops[static_cast<std::size_t>(Pipe::fp32)] *= 4;
  EXPECT_NEAR(alone(one_unit(), demand), 4'000, 2 * kLoad);
  demand.shape.block[0] = 128;  // four warps a block: one after the other on all of them, at the same rate
  EXPECT_NEAR(alone(one_unit(), demand), 4'000, 2 * kLoad);
}

TEST(WarpSchedulers, ABarrierLeavesAGapThatAnotherBlockFills) {
  GpuSpec spec = one_unit();
  spec.compute_unit.barrier_cycles = 40;
  KernelDemand demand = computing(100, 10'000);
  EXPECT_NEAR(alone(spec, demand), 10'000, 2 * kLoad);
  demand.barrier = true;
  EXPECT_NEAR(alone(spec, demand), 14'000, 2 * kLoad);
  const auto [first, second] = side_by_side(spec, demand, demand);
  EXPECT_NEAR(std::max(first, second), 20'000, 2 * kLoad);
}

TEST(WarpSchedulers, LoadsOfLaterRoundsAreInFlightWhileOneComputes) {
  KernelDemand demand = computing(20, 20 * 400.0);
  demand.stages = 1;
  const double one_at_a_time = alone(one_unit(), demand);
  EXPECT_GT(one_at_a_time, 20 * (400 + 100));  // an L2 hit at least before each round
  demand.stages = 2;
  EXPECT_NEAR(alone(one_unit(), demand), 20 * 400, 2 * kLoad);
}

// The slot is free long before the round of the other kernel is over, behind its barrier.
TEST(WarpSchedulers, AFreeSlotIsSeenWhileAnotherBlockIsAtABarrier) {
  GpuSpec spec = one_unit();
  spec.compute_unit.barrier_cycles = 1000;
  KernelDemand meets = computing(40, 40 * 100);
  meets.barrier = true;
  const KernelDemand short_rounds = computing(400, 400 * 0.5);
  const auto [first, second] = side_by_side(spec, meets, short_rounds);
  EXPECT_NEAR(first, 40 * (100 + 1000), 2 * kLoad);
  EXPECT_NEAR(second, alone(spec, short_rounds), 2 * 100);
}

TEST(WarpSchedulers, FractionsOfCyclesDoNotAddUp) {
  const KernelDemand demand = computing(1000, 1000 * 2.3);
  KernelDemand resident = demand;
  resident.stages = 1000;
  EXPECT_NEAR(alone(one_unit(), resident), 1000 * 2.3, 2 * kLoad + 100);
  WarpSchedulers schedulers(4, WarpPolicy::greedy_then_oldest);
  static_cast<void>(schedulers.place(4));
  Phase phase;
  phase.compute = kCycle / 3;
  WarpSchedulers::Booked booked;
  for (int i = 0; i < 300; ++i) {
    schedulers.add({.agent = 0, .age = 0, .since = booked.free, .busiest = phase.busiest, .partitions = 15});
    const auto ready = schedulers.pick(booked.free);
    ASSERT_TRUE(ready.has_value());
    booked = schedulers.book(*ready, phase);
  }
  EXPECT_EQ(booked.done, 300 * (kCycle / 3));
}

}  // namespace
}  // namespace weft
