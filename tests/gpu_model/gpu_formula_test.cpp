// A whole GPU against the formulas that bound it.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr double kLoadLatency = 40 + 2 + 200 + 58;  // cycles: there, slice, HBM, back
constexpr double kRestOfChunk = 3 * 4;  // four lines that go together come from one channel, one after another

// A kernel that reads `bytes` once.
KernelDemand reading(std::int64_t bytes) {
  KernelDemand demand = grid_of(static_cast<std::uint32_t>(bytes >> 14));
  demand.iterations = 4;
  demand.stages = 2;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 1 << 14}};
  return demand;
}

double cycles_alone(const GpuSpec& spec, const KernelDemand& demand) {
  AloneGpu alone(spec, program_of({kernel_op(demand)}));
  EXPECT_TRUE(alone.run().done());
  return alone.duration(0);
}

// Every line its own row and no limit on activates: each load takes the full latency, whatever the order.
GpuSpec without_row_hits(std::uint32_t outstanding) {
  GpuSpec spec = small_gpu();
  spec.hbm.row_bytes = 128;
  spec.hbm.row_cycle = Time(0);
  spec.compute_unit.max_outstanding_lines = outstanding;
  return spec;
}

TEST(GpuFormula, LittlesLawBoundsAKernelByItsOutstandingLines) {
  constexpr std::int64_t kBytes = 2 << 20;
  for (const std::uint32_t outstanding : {8U, 16U, 32U}) {
    const double lines_a_cycle = 4.0 * outstanding / (kLoadLatency + kRestOfChunk);
    const double expected = static_cast<double>(kBytes) / 128 / lines_a_cycle;
    const double taken = cycles_alone(without_row_hits(outstanding), reading(kBytes));
    EXPECT_NEAR(taken, expected, expected * 0.03) << outstanding;
  }
}

TEST(GpuFormula, StreamingReadsReachTheMemorysBandwidth) {
  constexpr std::int64_t kBytes = 8 << 20;
  GpuSpec spec = small_gpu();
  spec.hbm.banks = 64;  // with 16, rows of different blocks meet in a bank too often
  spec.hbm.refresh = nanoseconds(165);
  const double share = (165 + 30) / 3900.0;  // of refresh, and of opening the rows again
  const double expected = static_cast<double>(kBytes) / (128 * (1 - share));
  const double taken = cycles_alone(spec, reading(kBytes));
  EXPECT_GE(taken, expected);
  EXPECT_LE(taken, expected * 1.05 + kLoadLatency);
}

TEST(GpuFormula, WhatFitsIntoL2IsReadAtTheSlicesRate) {
  GpuSpec spec = small_gpu();
  spec.l2.bytes = 8 << 20;
  spec.compute_unit.l2_bytes_per_cycle = 256;
  constexpr std::int64_t kBytes = 2 << 20;
  AloneGpu alone(spec, program_of({kernel_op(reading(kBytes)), kernel_op(reading(kBytes))}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, kBytes);
  const double expected = static_cast<double>(kBytes) / (4 * 64);
  EXPECT_GE(alone.duration(1), expected);
  EXPECT_LE(alone.duration(1), expected * 1.05 + kLoadLatency);
}

TEST(GpuFormula, AUnitsPortBoundsWhatOneUnitReads) {
  GpuSpec spec = small_gpu();
  spec.l2.bytes = 8 << 20;
  spec.compute_units = 1;
  constexpr std::int64_t kBytes = 1 << 20;
  AloneGpu alone(spec, program_of({kernel_op(reading(kBytes)), kernel_op(reading(kBytes))}));
  alone.run();
  const double expected = static_cast<double>(kBytes) / 64;
  EXPECT_GE(alone.duration(1), expected);
  EXPECT_LE(alone.duration(1), expected * 1.03 + kLoadLatency);
}

TEST(GpuFormula, AComputeBoundKernelTakesItsOperationsOverTheRate) {
  for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
    GpuSpec spec = small_gpu();
    spec.compute_unit.pipe_efficiency = {0.8, 0.5, 1, 1, 0.9};
    KernelDemand demand = grid_of(4 * 8 * 5);  // full waves
    demand.iterations = 10;
    const double rate = spec.compute_unit.flops_per_cycle[pipe] * spec.compute_unit.pipe_efficiency[pipe] * 4;
    demand.flops[pipe] = 100'000 * rate;
    demand.reads = {{.base = 1 << 20, .bytes_per_block = 1280}};
    const double taken = cycles_alone(spec, demand);
    EXPECT_GE(taken, 100'000);
    EXPECT_LE(taken, 102'000) << pipe;
  }
}

TEST(GpuFormula, WritesOfMoreThanTheL2RunAtTheMemorysRate) {
  GpuSpec spec = small_gpu();
  spec.hbm.banks = 64;
  KernelDemand demand = grid_of(512);
  demand.iterations = 4;
  demand.writes = {{.base = 1 << 20, .bytes_per_block = 1 << 14}};
  const double lines = 512 * 128.0;
  const double resident = 64 * 1024 / 128.0;
  const double expected = (lines - resident) / 4 * 4;  // four channels, four cycles a line
  const double taken = cycles_alone(spec, demand);
  EXPECT_GE(taken, expected * 0.99);
  EXPECT_LE(taken, expected * 1.05);
}

TEST(GpuFormula, WhatComesIntoAGpcHasABound) {
  GpuSpec spec = small_gpu();
  spec.gpcs = 2;  // of two units each
  spec.l2.bytes = 1 << 20;
  KernelDemand demand = grid_of(256);
  demand.iterations = 4;
  demand.stages = 4;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 1 << 14, .modulo = 4}};  // 64 KiB, of the L2 soon
  const double bytes = 256 * 16384.0;
  const double by_units = bytes / (4 * 64);  // cycles; the slices give as much
  EXPECT_LE(cycles_alone(spec, demand), by_units * 1.2);
  spec.gpc_bytes_per_cycle = 40;
  const double by_gpcs = bytes / (2 * 40);
  EXPECT_GE(cycles_alone(spec, demand), by_gpcs * 0.99);
  EXPECT_LE(cycles_alone(spec, demand), by_gpcs * 1.05);
  spec.gpcs = 1;
  EXPECT_GE(cycles_alone(spec, demand), 2 * by_gpcs * 0.99);
  EXPECT_LE(cycles_alone(spec, demand), 2 * by_gpcs * 1.05);
}

}  // namespace
}  // namespace weft
