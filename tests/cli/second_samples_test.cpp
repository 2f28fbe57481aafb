#include "cli/sampled/second_samples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

// Reads `bytes` a block and computes nothing.
ProgramOp kernel_that_reads(std::uint64_t bytes, std::uint32_t blocks = 8) {
  KernelDemand demand = grid_of(blocks);
  demand.reads = {{.base = 0, .bytes_per_block = bytes}};
  return kernel_op(demand);
}

TEST(SecondSamples, GoWhereTheTimeGoes) {
  std::vector<ProgramOp> ops{kernel_that_reads(8 << 20)};
  for (std::uint64_t i = 1; i <= 200; ++i) ops.push_back(kernel_that_reads(128 * i));
  SecondSamples samples(small_gpu(), program_of(ops));
  EXPECT_TRUE(samples.wanted(OpId{0}));
  EXPECT_FALSE(samples.wanted(OpId{0}));
  int wanted = 0;
  for (std::uint32_t i = 1; i <= 200; ++i) wanted += samples.wanted(OpId{i}) ? 1 : 0;
  EXPECT_LT(wanted, 2 * SecondSamples::kAsked);
}

TEST(SecondSamples, LaunchesThatAskForTheSameCountTogether) {
  std::vector<ProgramOp> ops(10, kernel_that_reads(1 << 20));
  for (std::uint32_t i = 0; i < 10; ++i) ops[i].kernel.reads[0].base = std::uint64_t{i} << 24;
  ops.push_back(kernel_that_reads(1 << 22));
  SecondSamples samples(small_gpu(), program_of(ops));
  EXPECT_TRUE(samples.wanted(OpId{3}));
  EXPECT_FALSE(samples.wanted(OpId{4}));
  EXPECT_TRUE(samples.wanted(OpId{10}));
  for (std::uint32_t i = 0; i < 10; ++i) samples.count(OpId{i}, 100, i == 0 ? 0 : 103);  // one is not known
  samples.count(OpId{10}, 1000, 990);
  // 27 and -10 of 1900 that were seen twice, of 2000 that were counted, which are half of the time.
  EXPECT_DOUBLE_EQ(samples.off(4000).bias, 17.0 / 1900 / 2);
  EXPECT_DOUBLE_EQ(samples.off(4000).scatter, std::sqrt(27.0 * 27 + 100) / 1900 / 2);
}

TEST(SecondSamples, WhatIsTooLongForOneHasNone) {
  SecondSamples samples(small_gpu(), program_of({kernel_that_reads(64 << 20), kernel_that_reads(1 << 20)}));
  EXPECT_FALSE(samples.wanted(OpId{0}));
  EXPECT_TRUE(samples.wanted(OpId{1}));
  samples.count(OpId{0}, 900, 0);
  samples.count(OpId{1}, 100, 110);
  EXPECT_DOUBLE_EQ(samples.off(1000).bias, 10.0 / 1000);
}

TEST(SecondSamples, NoneTellNothing) {
  SecondSamples samples(small_gpu(), program_of({kernel_that_reads(1 << 20)}));
  EXPECT_EQ(samples.off(1000).bias, 0);
  samples.count(OpId{0}, 1000, 0);
  EXPECT_EQ(samples.off(1000).scatter, 0);
}

}  // namespace
}  // namespace weft
