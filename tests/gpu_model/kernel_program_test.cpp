// From a kernel's demand to the phases of its blocks.
#include "gpu_model/kernel_program.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

KernelProgram program(const KernelDemand& demand) { return KernelProgram(demand, small_gpu(), "k"); }

LineStream read_of(const Operand& operand, std::uint64_t block, double scale = 1) {
  KernelDemand demand = grid_of(64);
  demand.reads = {operand};
  demand.memory_scale = scale;
  return program(demand).phase(block, 0).loads[0];
}

TEST(KernelProgram, StreamsTakeWholeLinesOfAlignedOperands) {
  const LineStream lines = read_of({.base = 1024, .bytes_per_block = 512}, 3);
  EXPECT_EQ(lines.first, (1024U + 3 * 512) / 128);
  EXPECT_EQ(lines.lines, 4U);
  EXPECT_EQ(lines.first_sectors, 15);
  EXPECT_EQ(lines.last_sectors, 15);
  EXPECT_EQ(lines.target, Target::local);
}

TEST(KernelProgram, StreamsTakeOnlyTheSectorsTheyTouch) {
  const LineStream across = read_of({.base = 0, .bytes_per_block = 160}, 1);  // bytes 160 to 319
  EXPECT_EQ(across.first, 1U);
  EXPECT_EQ(across.lines, 2U);
  EXPECT_EQ(across.first_sectors, 0b1110);
  EXPECT_EQ(across.last_sectors, 0b0011);
  const LineStream within = read_of({.base = 128, .bytes_per_block = 33}, 1);  // bytes 161 to 193
  EXPECT_EQ(within.lines, 1U);
  EXPECT_EQ(within.first_sectors, 0b0110);
  EXPECT_EQ(within.last_sectors, 0b0110);
}

TEST(KernelProgram, DivisorAndModuloShareSlicesBetweenBlocks) {
  // C = A * B with 4 tiles a row: A by row, B by column.
  const Operand a{.base = 0, .bytes_per_block = 128, .divisor = 4};
  const Operand b{.base = 0, .bytes_per_block = 128, .modulo = 4};
  for (std::uint64_t block = 0; block < 16; ++block) {
    EXPECT_EQ(read_of(a, block).first, block / 4);
    EXPECT_EQ(read_of(b, block).first, block % 4);
  }
  EXPECT_TRUE(read_of(a, 0).through_l1);
  EXPECT_TRUE(read_of(b, 0).through_l1);
  EXPECT_FALSE(read_of({.base = 0, .bytes_per_block = 128}, 0).through_l1);
}

TEST(KernelProgram, LaterBlocksShareOperandsAsEarlierOnesDo) {
  // Four blocks share one slice of what is read, by clusters of two.
  KernelDemand demand = grid_of(64, 128);
  demand.reads = {{.base = 0, .bytes_per_block = 128, .divisor = 4}, {.base = 4096, .bytes_per_block = 128}};
  demand.shape.cluster_blocks = 2;
  GpuSpec gpu = small_gpu();
  gpu.max_cluster_blocks = 2;
  const KernelProgram kernel(demand, gpu, "k");
  EXPECT_EQ(kernel.alike_after(2, 9, 30), 28U);
  EXPECT_EQ(kernel.alike_after(0, 16, 4), 4U);
  // So near only blocks of the same slice are alike, if those that are asked for share one.
  EXPECT_EQ(kernel.alike_after(0, 2, 2), 2U);
  EXPECT_EQ(kernel.alike_after(0, 2, 3), 2U);
  EXPECT_EQ(kernel.alike_after(0, 4, 3), 0U);
  EXPECT_EQ(kernel.alike_after(3, 5, 3), 0U);
}

TEST(KernelProgram, LaterBlocksShareEachOperandAsEarlierOnesDo) {
  // What is written counts, too; and pairs within sixteen stay pairs.
  KernelDemand demand = grid_of(64, 128);
  demand.reads = {{.base = 0, .bytes_per_block = 128, .divisor = 2}};
  demand.writes = {{.base = 4096, .bytes_per_block = 128, .divisor = 16, .atomic = true}};
  const KernelProgram kernel(demand, small_gpu(), "k");
  EXPECT_EQ(kernel.alike_after(3, 20, 40), 32U);
  EXPECT_EQ(kernel.alike_after(0, 4, 11), 10U);
  EXPECT_EQ(kernel.alike_after(0, 4, 1), 0U);
  EXPECT_EQ(kernel.alike_after(14, 18, 11), 0U);
}

TEST(KernelProgram, TheMemoryScaleTakesBytesNotPlaces) {
  const LineStream half = read_of({.base = 0, .bytes_per_block = 1024}, 2, 0.5);
  EXPECT_EQ(half.first, 16U);
  EXPECT_EQ(half.lines, 4U);
  EXPECT_EQ(read_of({.base = 0, .bytes_per_block = 1024}, 2, 0).lines, 0U);
}

TEST(KernelProgram, WritesWithTheRoundsOrInAPhaseOfTheirOwn) {
  KernelDemand demand = grid_of(2);
  demand.iterations = 5;
  demand.reads = {{.base = 0, .bytes_per_block = 1280}};
  demand.writes = {{.base = 8192, .bytes_per_block = 128}};
  const KernelProgram streaming = program(demand);
  EXPECT_EQ(streaming.phases(), 1U);
  EXPECT_EQ(streaming.phase(0, 0).rounds, 5U);
  EXPECT_EQ(streaming.phase(0, 0).store_count, 1);
  demand.write_at_end = true;
  const KernelProgram gemm = program(demand);
  EXPECT_EQ(gemm.phases(), 2U);
  EXPECT_EQ(gemm.phase(0, 0).store_count, 0);
  EXPECT_EQ(gemm.phase(0, 1).load_count, 0);
  EXPECT_EQ(gemm.phase(0, 1).store_count, 1);
  EXPECT_EQ(gemm.phase(0, 1).rounds, 1U);
  demand.writes.clear();
  EXPECT_EQ(program(demand).phases(), 1U);  // nothing to write at the end
}

TEST(KernelProgram, ComputesOnTheSlowestPipe) {
  KernelDemand demand = grid_of(10);
  demand.iterations = 4;
  demand.flops = {512 * 100, 256 * 50, 64 * 1000};  // 100, 50 and 1000 cycles in all
  const Phase phase = program(demand).phase(0, 0);
  EXPECT_EQ(phase.busiest, Slot::fp32);
  EXPECT_EQ(phase.compute, cycles(100.0 / 4));
  demand.extra_cycles_per_block = 8;
  EXPECT_EQ(program(demand).phase(0, 0).compute, cycles(108.0 / 4));
}

TEST(KernelProgram, SoftmaxAndProductsOfAttentionTakeTurns) {
  GpuSpec gpu = small_gpu();
  KernelDemand demand = grid_of(10);
  demand.iterations = 4;
  demand.flops = {512 * 400, 0, 64 * 1000, 0, 16 * 2000};  // 400, 1000 and 2000 cycles in all
  const auto round = [&] { return KernelProgram(demand, gpu, "k").phase(0, 0); };
  EXPECT_EQ(round().busiest, Slot::sfu);
  demand.attention = AttentionPass::forward;
  EXPECT_EQ(round().busiest, Slot::tensor);
  EXPECT_EQ(round().compute, cycles((400 + 2000) / 10.0 / 4));
  // Both passes multiply at a rate of their own where the GPU has one.
  gpu.compute_unit.attention_efficiency = {.forward = 0.5, .backward = 0.25};
  EXPECT_EQ(round().compute, cycles((800 + 2000) / 10.0 / 4));
  demand.attention = AttentionPass::backward;
  EXPECT_EQ(round().compute, cycles((1600 + 2000) / 10.0 / 4));
  demand.attention = AttentionPass::none;
  EXPECT_EQ(round().compute, cycles(2000 / 10.0 / 4));
}

TEST(KernelProgram, RefusesABlockThatDoesNotFit) {
  KernelDemand demand = grid_of(1);
  demand.shape.shared_memory_bytes = (64 << 10) + 1;
  EXPECT_THROW(program(demand), InputError);
  demand.shape.shared_memory_bytes = 64 << 10;
  EXPECT_NO_THROW(program(demand));
  demand.shape.registers_per_thread = 257;
  EXPECT_THROW(program(demand), InputError);
}

TEST(KernelProgram, RefusesMoreOperandsThanAPhaseHas) {
  KernelDemand demand = grid_of(1);
  demand.reads.assign(Phase::kMaxLoads, {.base = 0, .bytes_per_block = 128});
  EXPECT_NO_THROW(program(demand));
  demand.reads.push_back({.base = 0, .bytes_per_block = 128});
  EXPECT_THROW(program(demand), InputError);
}

// 13 blocks on 80 lines of 4 parts: every line once, to the group of its part, whatever lines blocks share.
TEST(KernelProgram, PushesEachLineOnceToTheGroupOfItsPart) {
  KernelDemand demand = grid_of(13);
  demand.write_at_end = true;
  demand.writes = {{.base = 4096, .bytes_per_block = 80 * 128 / 13}, {.base = 0, .bytes_per_block = 128}};
  const PushedOutput pushed{.address = 4096, .lines = 80, .parts = 4, .sums = 1000, .multicast_group = 7, .flag = 3};
  const KernelProgram kernel(demand, small_gpu(), "k", &pushed);
  std::vector<std::uint32_t> times(80, 0);
  for (std::uint64_t block = 0; block < 13; ++block) {
    const Phase phase = kernel.phase(block, 1);
    for (std::size_t i = 0; i < phase.store_count; ++i) {
      const LineStream& store = phase.stores.at(i);
      if (store.target == Target::local) continue;
      EXPECT_EQ(store.target, Target::multicast);
      EXPECT_TRUE(store.adds);
      EXPECT_EQ(store.arrival_flag, 3U);
      for (std::uint32_t line = 0; line < store.lines; ++line) {
        ++times.at((store.gpu - 7U) * 20 + store.first - 1000 + line);
      }
    }
    EXPECT_EQ(phase.stores.at(phase.store_count - 1U).target, Target::local);  // the other operand stays at home
  }
  EXPECT_EQ(times, std::vector<std::uint32_t>(80, 1));
  EXPECT_EQ(program(demand).phase(5, 1).stores[0].target, Target::local);
}

TEST(KernelProgram, RefusesBlocksOfTooManyParts) {
  KernelDemand demand = grid_of(2);
  demand.writes = {{.base = 4096, .bytes_per_block = 40 * 128}};
  const PushedOutput pushed{.address = 4096, .lines = 80, .parts = 8, .sums = 0, .multicast_group = 0, .flag = 0};
  EXPECT_THROW(KernelProgram(demand, small_gpu(), "k", &pushed), InputError);
}

}  // namespace
}  // namespace weft
