#include <gtest/gtest.h>

#include "gpu_model/wave_skip.h"
#include "tests/gpu_model/small_gpu.h"

// What a GPU leaves out of a kernel by itself.
namespace weft {
namespace {

// Blocks that all run at once, in rounds of 128 lines: they load, compute for a while and store half as much.
Program one_wave(std::uint32_t blocks, double flops_of_block, std::uint32_t rounds = 256) {
  KernelDemand demand = grid_of(blocks, 128);
  demand.reads = {{.base = 0, .bytes_per_block = std::uint64_t{rounds} << 14}};
  demand.writes = {{.base = 128 << 20, .bytes_per_block = std::uint64_t{rounds} << 13}};
  demand.iterations = rounds;
  demand.stages = 2;
  demand.flops[0] = flops_of_block * blocks;
  return program_of({kernel_op(demand)});
}

void expect_the_same_in_less(const Program& program, double share = 0.7, const GpuSpec& gpu = small_gpu()) {
  AloneGpu whole(gpu, program);
  const Gpu& all = whole.run();
  AloneGpu skipping(gpu, program);
  skipping.skip_waves();
  const Gpu& some = skipping.run();
  ASSERT_TRUE(some.done());
  const GpuProgress& left_out = some.skipped();
  EXPECT_LT(some.statistics().memory_transactions, share * static_cast<double>(all.statistics().memory_transactions));
  EXPECT_GT(left_out.at, 0);
  EXPECT_NEAR(skipping.duration(0) / whole.duration(0), 1, 0.02);
  const double held = some.statistics().unit_seconds_compute + left_out.unit_seconds_compute;
  EXPECT_NEAR(held / all.statistics().unit_seconds_compute, 1, 0.03);
  const HbmStatistics seen = some.l2().hbm_statistics();
  const HbmStatistics expected = all.l2().hbm_statistics();
  EXPECT_NEAR(static_cast<double>(seen.read_bytes + left_out.hbm_read_bytes) / static_cast<double>(expected.read_bytes),
              1, 0.02);
  EXPECT_NEAR(
      static_cast<double>(seen.write_bytes + left_out.hbm_write_bytes) / static_cast<double>(expected.write_bytes), 1,
      0.02);
}

// Batches of writes and refreshes come at other times than they would have: single kernels are up to 2.5 % off, all
// together are not.
TEST(GpuWaves, RoundsOfOneWaveThatWaitsForHbm) {
  double whole_time = 0, skipping_time = 0;
  for (std::uint32_t rounds = 128; rounds <= 1024; rounds += 112) {
    const Program program = one_wave(8, 4, rounds);
    AloneGpu whole(small_gpu(), program);
    const Gpu& all = whole.run();
    AloneGpu skipping(small_gpu(), program);
    skipping.skip_waves();
    const Gpu& some = skipping.run();
    EXPECT_LT(some.statistics().memory_transactions, 0.8 * static_cast<double>(all.statistics().memory_transactions));
    const HbmStatistics seen = some.l2().hbm_statistics(), expected = all.l2().hbm_statistics();
    const auto moved = [](const HbmStatistics& h) { return static_cast<double>(h.read_bytes + h.write_bytes); };
    const GpuProgress& left_out = some.skipped();
    const auto skipped = static_cast<double>(left_out.hbm_read_bytes + left_out.hbm_write_bytes);
    EXPECT_NEAR((moved(seen) + skipped) / moved(expected), 1, 0.02) << rounds;
    EXPECT_NEAR(skipping.duration(0) / whole.duration(0), 1, 0.03) << rounds;
    whole_time += whole.duration(0);
    skipping_time += skipping.duration(0);
  }
  EXPECT_NEAR(skipping_time / whole_time, 1, 0.01);
}

TEST(GpuWaves, RoundsOfOneWaveThatComputes) { expect_the_same_in_less(one_wave(8, 6.4e8)); }

// Of many rounds one loads a line, so all are complete long before they are computed.
TEST(GpuWaves, RoundsThatLoadNothing) {
  KernelDemand demand = grid_of(8, 128);
  demand.reads = {{.base = 0, .bytes_per_block = 32}};
  demand.writes = {{.base = 1 << 20, .bytes_per_block = 4096}};
  demand.write_at_end = true;
  demand.iterations = 200'000;
  demand.stages = 2;
  demand.flops[0] = 3.2e9 * 8;
  const Program program = program_of({kernel_op(demand)});
  AloneGpu whole(small_gpu(), program);
  whole.run();
  AloneGpu skipping(small_gpu(), program);
  skipping.skip_waves();
  const Gpu& some = skipping.run();
  EXPECT_TRUE(some.done());
  EXPECT_GT(some.skipped().at, 0);
  EXPECT_NEAR(skipping.duration(0) / whole.duration(0), 1, 0.01);
}

// Waves of blocks that stream the same lines, more than the L2 holds, and add to others, which are fetched first: what
// is left out moves as much as what is simulated.
TEST(GpuWaves, BlocksThatStreamTheSameLines) {
  constexpr std::uint32_t kBlocks = 16;
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = 4 << 20;
  KernelDemand demand = grid_of(kBlocks, 128);
  demand.shape.shared_memory_bytes = 40 << 10;  // one on a unit
  demand.reads = {{.base = 0, .bytes_per_block = 3 << 20, .divisor = kBlocks}};
  demand.writes = {{.base = 64 << 20, .bytes_per_block = 3 << 20, .divisor = kBlocks, .atomic = true}};
  demand.iterations = 6144;
  demand.stages = 2;
  demand.flops[0] = 4.8e8 * kBlocks;
  expect_the_same_in_less(program_of({kernel_op(demand)}), 0.8, gpu);
}

// Long waves across groups of blocks that stream the same lines: those that run become as many of a later group.
TEST(GpuWaves, WavesOfBlocksThatStreamTheSameLines) {
  constexpr std::uint32_t kBlocks = 240, kSharing = 15;
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = 4 << 20;
  KernelDemand demand = grid_of(kBlocks, 128);
  demand.shape.shared_memory_bytes = 40 << 10;  // one on a unit
  demand.reads = {{.base = 0, .bytes_per_block = 8 << 20, .divisor = kSharing}};
  demand.writes = {{.base = 128 << 20, .bytes_per_block = 4096}};
  demand.write_at_end = true;
  demand.iterations = 2048;
  demand.stages = 2;
  demand.flops[0] = 6.4e8 * kBlocks;
  expect_the_same_in_less(program_of({kernel_op(demand)}), 0.4, gpu);
}

// Two units have two blocks each and two have one, which is through in half of the time.
TEST(GpuWaves, BlocksThatShareAUnitGoOnMoreSlowly) { expect_the_same_in_less(one_wave(6, 6.4e8), 0.95); }

}  // namespace
}  // namespace weft
