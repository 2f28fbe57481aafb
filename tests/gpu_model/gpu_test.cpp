// A whole GPU alone: exact unloaded times, waves of blocks, resident communication, flags.
#include "gpu_model/gpu.h"

#include <gtest/gtest.h>

#include "tests/gpu_model/small_kernels.h"

namespace weft {
namespace {

constexpr Operand kOneLine{.base = 1 << 20, .bytes_per_block = 128};

TEST(Gpu, AKernelStartsAfterIssueTransportAndLaunch) {
  AloneGpu alone(small_gpu(), program_of({kernel_op(whole_units(1, 10))}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(start_of(gpu, 0), 1000 + 2000 + 500);
  EXPECT_TRUE(gpu.done());
}

TEST(Gpu, ALateOperationStartsAsMuchLater) {
  ProgramOp late = kernel_op(whole_units(1, 10));
  late.start_delay = nanoseconds(700);
  AloneGpu alone(small_gpu(), program_of({kernel_op(whole_units(1, 5000)), late}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(start_of(gpu, 1), end_of(gpu, 0) + 500 + 700);
}

TEST(Gpu, AKernelThatIsKnownTakesItsTimeAndNothingElse) {
  KernelDemand loads = grid_of(4);
  loads.reads = {kOneLine};
  ProgramOp beside = kernel_op(whole_units(4, 100));
  beside.stream = StreamId{1};
  Program program = program_of({kernel_op(loads), kernel_op(whole_units(1, 10)), beside});
  program.priorities = {0, 0};
  GpuWork work;
  work.program = &program;
  work.scripts.assign(3, nullptr);
  work.lasts = {5000 * kCycle, 0, 0};
  Gpu gpu(GpuId{0}, small_gpu(), work, LinkPorts());
  run_alone(gpu);
  EXPECT_TRUE(gpu.done());
  EXPECT_EQ(end_of(gpu, 0), start_of(gpu, 0) + 5000);
  EXPECT_EQ(start_of(gpu, 1), end_of(gpu, 0) + 500);
  EXPECT_EQ(gpu.statistics().memory_transactions, 0);
  EXPECT_LT(end_of(gpu, 2), end_of(gpu, 0));  // it had all units meanwhile
}

// One unit has a block of another kernel, beside which there is room for one more; the distributor comes to it next.
TEST(Gpu, BlocksGoWhereThereIsMostRoom) {
  const auto half_units = [](std::uint32_t blocks, double computed) {
    KernelDemand demand = whole_units(blocks, computed);
    demand.shape.shared_memory_bytes /= 2;
    return demand;
  };
  for (const std::uint32_t blocks : {3U, 4U}) {
    ProgramOp others = kernel_op(half_units(3, 10));
    others.stream = StreamId{1};
    ProgramOp last = kernel_op(half_units(blocks, 1000));
    last.stream = StreamId{1};
    AloneGpu alone(small_gpu(), program_of({kernel_op(half_units(1, 50000)), others, last}, 2));
    const Gpu& gpu = alone.run();
    EXPECT_LT(end_of(gpu, 1), end_of(gpu, 0));
    if (blocks == 3) {
      EXPECT_LE(alone.duration(2), 1000 + 3 * kBlockStart);
    } else {
      EXPECT_GT(alone.duration(2), 1500);  // one has to share
    }
  }
}

TEST(Gpu, QueuedKernelsFollowAtTheDevicesLatency) {
  AloneGpu alone(small_gpu(), program_of({kernel_op(whole_units(1, 5000)), kernel_op(whole_units(1, 10))}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(start_of(gpu, 1), end_of(gpu, 0) + 500);
}

TEST(Gpu, ALoadTakesTheUnloadedLatencyOfItsLevel) {
  KernelDemand demand = grid_of(1);
  demand.reads = {kOneLine};
  AloneGpu alone(small_gpu(), program_of({kernel_op(demand), kernel_op(demand)}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(alone.duration(0), kBlockStart + kHit + kHbm);
  EXPECT_EQ(alone.duration(1), kBlockStart + kHit);
  EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, 128);
  EXPECT_EQ(gpu.statistics().memory_transactions, 2);
}

TEST(Gpu, AKernelEndsWhenItsStoresAreDone) {
  KernelDemand demand = grid_of(1);
  demand.writes = {kOneLine};
  AloneGpu alone(small_gpu(), program_of({kernel_op(demand)}));
  alone.run();
  EXPECT_EQ(alone.duration(0), kBlockStart + kHit);
}

TEST(Gpu, RoundsLoadComputeAndStore) {
  KernelDemand demand = grid_of(1);
  demand.reads = {kOneLine};
  demand.writes = {{.base = 2 << 20, .bytes_per_block = 128}};
  demand.flops[2] = 64 * 1000;
  AloneGpu alone(small_gpu(), program_of({kernel_op(demand)}));
  alone.run();
  EXPECT_EQ(alone.duration(0), kBlockStart + kHit + kHbm + 1000 + kHit);
}

TEST(Gpu, OneBlockMoreThanFitsTakesASecondWave) {
  for (const std::uint32_t blocks : {1U, 4U, 5U, 8U, 9U}) {
    AloneGpu alone(small_gpu(), program_of({kernel_op(whole_units(blocks, 1000))}));
    const Gpu& gpu = alone.run();
    const double waves = (blocks + 3) / 4;
    EXPECT_NEAR(alone.duration(0), 1000 * waves, 5 * waves) << blocks;
    EXPECT_NEAR(gpu.statistics().unit_seconds_compute * 1e9, 1000.0 * blocks, 5.0 * blocks);
  }
}

TEST(Gpu, BlocksThatFitTogetherShareThePipe) {
  KernelDemand demand = grid_of(16);  // four a unit
  demand.extra_cycles_per_block = 1000;
  AloneGpu alone(small_gpu(), program_of({kernel_op(demand)}));
  const Gpu& gpu = alone.run();
  EXPECT_NEAR(alone.duration(0), 4000, 20);
  EXPECT_NEAR(gpu.ledger(OpId{0}).stall / static_cast<double>(kCycle), 0,
              20);                                 // queueing for it is no stall for memory
  EXPECT_EQ(gpu.ledger(OpId{0}).held_by_pipe, 0);  // and nobody else's doing
}

TEST(Gpu, AResidentCommunicationBlockTakesItsUnitAway) {
  AloneGpu alone(small_gpu(), program_of({collective_op(0), kernel_op(whole_units(4, 1000), 1)}, 2));
  const ScriptedKernel waits = waiting_block(1);
  alone.script(0, &waits, 1);
  const Gpu& gpu = alone.run();
  EXPECT_NEAR(alone.duration(1), 2000, 10);
  EXPECT_FALSE(gpu.done());  // nobody ever counts the flag
  EXPECT_EQ(gpu.times()[0].end, -1);
}

// Occupancy of both kernels, not a rate, makes the wave: 24 resident blocks of a collective leave 108 of 132 units.
TEST(Gpu, AGridAsWideAsTheGpuTakesASecondWaveBesideACollective) {
  GpuSpec spec = small_gpu();
  spec.compute_units = 132;
  const ScriptedKernel resident = waiting_block(1, 24);
  const auto taken = [&](std::uint32_t blocks) {
    // The same work, whatever the grid.
    AloneGpu alone(spec, program_of({collective_op(0), kernel_op(whole_units(blocks, 132'000.0 / blocks), 1)}, 2));
    alone.script(0, &resident, 1);
    alone.run();
    return alone.duration(1);
  };
  EXPECT_NEAR(taken(132), 2 * 1'000, 150);
  EXPECT_NEAR(taken(108), 132'000.0 / 108, 150);  // a persistent grid of the free units
}

TEST(Gpu, AFlagThatCountsFarEnoughReleasesWhoWaits) {
  ScriptedKernel posts;
  posts.threads_per_block = 32;
  WarpScript script;
  Phase phase;
  phase.store({.first = 4096, .lines = 1});
  phase.post({.flag = 0});
  script.phases = {phase, phase};
  script.lines_in_flight = 16;
  posts.programs = one_block(script);
  const ScriptedKernel waits = waiting_block(2);
  AloneGpu alone(small_gpu(), program_of({collective_op(0), collective_op(1)}, 2));
  alone.script(0, &waits, 1);
  alone.script(1, &posts, 1);
  const Gpu& gpu = alone.run();
  EXPECT_TRUE(gpu.done());
  // Two phases, each with its fence: the post leaves when the store is done.
  const double posted = start_of(gpu, 1) + kBlockStart + 2 * kHit;
  EXPECT_EQ(end_of(gpu, 1), posted);
  EXPECT_EQ(end_of(gpu, 0), posted + kRequest + kHit / 2 + kResponse);  // polls come a hit's latency apart
}

TEST(Gpu, CopiesGoThroughTheCopyEngineAndLeaveTheUnitsAlone) {
  const ScriptedKernel copy = host_copy(1024, 32, 8);
  ProgramOp op;
  op.kind = ProgramOpKind::copy;
  op.stream = StreamId{0};
  AloneGpu alone(small_gpu(), program_of({op, kernel_op(whole_units(4, 1000), 1)}, 2));
  alone.script(0, &copy, 0);
  const Gpu& gpu = alone.run();
  EXPECT_NEAR(alone.duration(0), 1024 * 4, 200);  // 32 B a cycle
  EXPECT_NEAR(alone.duration(1), 1000, 10);
  EXPECT_EQ(gpu.statistics().unit_seconds_communication, 0);
}

TEST(Gpu, TwoRunsAreTheSame) {
  KernelDemand demand = grid_of(100);
  demand.iterations = 4;
  demand.reads = {{.base = 0, .bytes_per_block = 4096}, {.base = 1 << 20, .bytes_per_block = 8192, .modulo = 7}};
  demand.writes = {{.base = 4 << 20, .bytes_per_block = 2000}};
  const Program program = program_of({kernel_op(demand), kernel_op(demand, 1)}, 2);
  AloneGpu a(small_gpu(), program);
  AloneGpu b(small_gpu(), program);
  const Gpu& first = a.run();
  const Gpu& second = b.run();
  for (std::size_t op = 0; op < 2; ++op) EXPECT_EQ(first.times()[op].end, second.times()[op].end);
  EXPECT_EQ(first.statistics().memory_transactions, second.statistics().memory_transactions);
}

}  // namespace
}  // namespace weft
