// A GPU whose lines stand for several of the memory's.
#include "gpu_model/coarse_gpu.h"

#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

GpuSpec wide_gpu() {
  GpuSpec gpu = small_gpu();
  gpu.l2.slices = 32;
  gpu.l2.bytes = 1 << 20;
  gpu.hbm.channels = 16;
  gpu.hbm.bandwidth = gigabytes_per_second(16 * 32);
  gpu.l2.tlb.unit_page = 2 << 20;
  return gpu;
}

L2Cache l2_of(const GpuSpec& gpu) { return {gpu.l2, gpu.hbm, gpu.clock}; }

TEST(CoarseGpu, HasFewerSlicesAndChannelsThatAreAsFast) {
  const GpuSpec gpu = wide_gpu();
  for (const std::uint32_t grain : {2U, 4U, 8U}) {
    const GpuSpec told = coarse(gpu, grain);
    EXPECT_EQ(told.grain, grain);
    EXPECT_EQ(told.l2.slices, gpu.l2.slices / grain);
    EXPECT_EQ(told.l2.bytes_per_cycle, gpu.l2.bytes_per_cycle);
    EXPECT_EQ(told.l2.bytes, gpu.l2.bytes / grain);
    EXPECT_EQ(told.hbm.bandwidth.count() / told.hbm.channels, gpu.hbm.bandwidth.count() / gpu.hbm.channels);
    EXPECT_EQ(told.compute_unit.l2_bytes_per_cycle, gpu.compute_unit.l2_bytes_per_cycle / grain);
    EXPECT_EQ(told.compute_unit.max_outstanding_lines, gpu.compute_unit.max_outstanding_lines / grain);
    EXPECT_NO_THROW(l2_of(told));
  }
}

TEST(CoarseGpu, HasSlowerSlicesWhereTheirNumberDoesNotDivide) {
  GpuSpec gpu = wide_gpu();
  gpu.l2.slices = gpu.hbm.channels = 20;  // two of a half at least: 5 times fewer, not 8
  const GpuSpec told = coarse(gpu, 8);
  EXPECT_EQ(told.l2.slices, 4U);
  EXPECT_EQ(told.hbm.channels, 4U);
  EXPECT_EQ(told.l2.bytes_per_cycle, 64U * 5 / 8);
  EXPECT_NEAR(static_cast<double>(told.hbm.bandwidth.count()), static_cast<double>(gpu.hbm.bandwidth.count()) / 8, 1);
}

TEST(CoarseGpu, ThePlaceOfALineLeadsBackToIt) {
  const L2Cache l2 = l2_of(wide_gpu());
  for (LineAddress line = 1; line < 3'000'000; line += 1 + line / 7) EXPECT_EQ(l2.address(l2.place(line)), line);
}

TEST(CoarseGpu, LinesAreCopiedThereAndBack) {
  const GpuSpec gpu = wide_gpu();
  L2Cache fine = l2_of(gpu);
  fine.touch({.first = 4096, .count = 512, .communication = true}, L2Cache::Use::write);
  fine.touch({.first = 100'000, .count = 256}, L2Cache::Use::read);
  L2Cache told = l2_of(coarse(gpu, 8));
  copy_lines(fine, 1, 8, told);
  EXPECT_EQ(told.read({.first = 4096 / 8, .count = 64}, 0).fetched_bytes, 0U);
  EXPECT_EQ(told.read({.first = 100'000 / 8, .count = 32}, 0).fetched_bytes, 0U);
  EXPECT_EQ(told.read({.first = 0, .count = 4}, 0).fetched_bytes, 4 * kLineBytes);
  L2Cache back = l2_of(gpu);
  copy_lines(told, 8, 1, back);
  std::uint32_t dirty = 0;
  std::uint32_t lines = 0;
  back.for_each_line([&](LineAddress line, bool written, bool communication) {
    ++lines;
    EXPECT_EQ(written, communication);
    if (written) ++dirty;
    const bool among = line < 32 || (line >= 4096 && line < 4608) || (line >= 100'000 && line < 100'256);
    EXPECT_TRUE(among) << line;
  });
  EXPECT_EQ(dirty, 512U);
  EXPECT_EQ(lines, 512U + 256 + 32);
}

}  // namespace
}  // namespace weft
