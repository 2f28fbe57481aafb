// An L2 that is given what it holds.
#include <gtest/gtest.h>

#include "gpu_model/l2_warming.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr std::uint32_t kLinesOfCache = 512;

L2Cache cache() {
  const GpuSpec gpu = small_gpu();
  return {gpu.l2, gpu.hbm, gpu.clock};
}

std::uint32_t fetched(L2Cache& l2, LineAddress first, std::uint32_t count) {
  return l2.read({.first = first, .count = count}, cycles(std::int64_t{100'000})).fetched_bytes;
}

TEST(L2Touch, TouchedLinesAreThere) {
  L2Cache l2 = cache();
  l2.touch({.first = 101, .count = 77}, L2Cache::Use::read);
  EXPECT_EQ(fetched(l2, 101, 77), 0U);
  EXPECT_EQ(fetched(l2, 200, 4), 4 * kLineBytes);
  EXPECT_EQ(l2.hbm_statistics().write_bytes, 0);
}

TEST(L2Touch, OnlyTheSectorsThatWereTouched) {
  L2Cache l2 = cache();
  l2.touch({.first = 8, .count = 1, .first_sectors = 3, .last_sectors = 3}, L2Cache::Use::read);
  EXPECT_EQ(fetched(l2, 8, 1), 2 * kSectorBytes);
}

TEST(L2Touch, WhatWasWrittenGoesToMemoryWhenItMakesRoom) {
  L2Cache l2 = cache();
  l2.touch({.first = 0, .count = kLinesOfCache}, L2Cache::Use::write);
  for (LineAddress line = 0; line < 16 * kLinesOfCache; line += 4) fetched(l2, 100'000 + line, 4);
  // All but what still waits for the next batch of its channel.
  constexpr std::int64_t all = std::int64_t{kLinesOfCache} * kLineBytes;
  EXPECT_LE(l2.hbm_statistics().write_bytes, all);
  EXPECT_GE(l2.hbm_statistics().write_bytes, all - 4 * 8 * kLineBytes);
}

TEST(L2Touch, SaysWhatHbmWouldHaveMoved) {
  L2Cache l2 = cache();
  EXPECT_EQ(l2.touch({.first = 0, .count = 8}, L2Cache::Use::read).fetched_bytes, 8 * kLineBytes);
  EXPECT_EQ(l2.touch({.first = 4, .count = 8}, L2Cache::Use::read).fetched_bytes, 4 * kLineBytes);
  const L2Cache::Touched written = l2.touch({.first = 100, .count = 5}, L2Cache::Use::write);
  EXPECT_EQ(written.fetched_bytes, 0);
  EXPECT_EQ(written.written_back_bytes, 0);
  L2Cache::Touched all;
  for (LineAddress line = 0; line < 16 * kLinesOfCache; line += 4) {
    all += l2.touch({.first = 100'000 + line, .count = 4}, L2Cache::Use::read);
  }
  EXPECT_EQ(all.fetched_bytes, std::int64_t{16} * kLinesOfCache * kLineBytes);
  EXPECT_EQ(all.written_back_bytes, 5 * kLineBytes);
}

TEST(L2Touch, AtomicsNeedWhatIsThere) {
  L2Cache l2 = cache();
  EXPECT_EQ(l2.touch({.first = 0, .count = 8}, L2Cache::Use::atomic).fetched_bytes, 8 * kLineBytes);
  EXPECT_EQ(l2.touch({.first = 0, .count = 8}, L2Cache::Use::atomic).fetched_bytes, 0);
  L2Cache::Touched all;
  for (LineAddress line = 0; line < 16 * kLinesOfCache; line += 4) {
    all += l2.touch({.first = 100'000 + line, .count = 4}, L2Cache::Use::read);
  }
  EXPECT_EQ(all.written_back_bytes, 8 * kLineBytes);
}

// Blocks that run together touch what they write at their end after all that they read.
TEST(L2Touch, WhatAWaveWritesAtItsEndIsThereLast) {
  KernelDemand demand = grid_of(8, 32);
  demand.reads = {{.base = 0, .bytes_per_block = 16 << 10}};        // twice the cache together
  demand.writes = {{.base = 2 << 20, .bytes_per_block = 1 << 10}};  // an eighth of it
  demand.write_at_end = true;
  const KernelProgram kernel(demand, small_gpu(), "partial_sums");
  L2Cache l2 = cache();
  touch_blocks(kernel, 0, 8, 8, l2);
  EXPECT_EQ(fetched(l2, (2 << 20) / kLineBytes, 64), 0U);
}

TEST(L2Touch, PagesOfAKernelAreTranslated) {
  GpuSpec gpu = small_gpu();
  gpu.l2.tlb.entries = 16;
  gpu.l2.tlb.walks = 1;
  gpu.l2.tlb.walk_latency_cycles = 700;
  KernelDemand demand = grid_of(4, 32);
  demand.reads = {{.base = 0, .bytes_per_block = static_cast<std::uint32_t>(gpu.l2.tlb.page)}};
  L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
  touch_pages(KernelProgram(demand, gpu, "pages"), gpu.l2.tlb, l2);
  l2.rest();
  EXPECT_EQ(l2.page_table().walks(), 4);
  const auto line = static_cast<LineAddress>(3 * gpu.l2.tlb.page / kLineBytes);
  const SubCycle known = l2.translate(line, 0);
  EXPECT_GE(l2.translate(2 * line, 0), known + cycles(std::int64_t{700}));
}

// Blocks read a slice of their own of one operand and all of another, and write a third.
KernelDemand shared_reads() {
  KernelDemand demand;
  demand.shape.grid = {16, 1, 1};
  demand.shape.block = {32, 1, 1};
  demand.reads = {{.base = 0, .bytes_per_block = 1024}, {.base = 1 << 20, .bytes_per_block = 2048, .modulo = 1}};
  demand.writes = {{.base = 2 << 20, .bytes_per_block = 512}};
  return demand;
}

TEST(L2Touch, BlocksTouchWhatTheyWouldReadAndWrite) {
  const KernelProgram kernel(shared_reads(), small_gpu(), "shared");
  L2Cache l2 = cache();
  touch_blocks(kernel, 4, 16, 8, l2);
  EXPECT_EQ(fetched(l2, 4 * 1024 / kLineBytes, 12 * 8), 0U);
  EXPECT_EQ(fetched(l2, (1 << 20) / kLineBytes, 16), 0U);
  EXPECT_EQ(fetched(l2, ((2 << 20) + 4 * 512) / kLineBytes, 12 * 4), 0U);
  EXPECT_EQ(fetched(l2, 0, 4 * 8), 4 * 8 * kLineBytes);
}

TEST(L2Touch, TheLastBlocksThatFitCountSharedLinesOnce) {
  const KernelProgram kernel(shared_reads(), small_gpu(), "shared");
  std::int64_t bytes = 2048 + 3 * (1024 + 512);
  CountedSlices counted;
  EXPECT_EQ(last_blocks_of(kernel, 0, 16, bytes, counted), 13U);
  EXPECT_EQ(bytes, 0);
  bytes = 1024 + 512;  // the three blocks counted above are none of these
  EXPECT_EQ(last_blocks_of(kernel, 0, 16, bytes, counted), 12U);
  counted.clear();
  bytes = 1 << 20;
  EXPECT_EQ(last_blocks_of(kernel, 0, 16, bytes, counted), 0U);
  EXPECT_EQ(bytes, (1 << 20) - 2048 - 16 * (1024 + 512));
}

// Lines are spread evenly: a part of the slices says what all would.
TEST(L2Touch, SomeSlicesAreASampleOfAll) {
  GpuSpec gpu = small_gpu();
  gpu.l2.slices = 20;
  gpu.l2.bytes = 20 * 64 * 8 * kLineBytes;
  gpu.hbm.channels = 10;
  L2Cache all(gpu.l2, gpu.hbm, gpu.clock);
  L2Cache some = all;
  EXPECT_DOUBLE_EQ(all.share_told(L2Cache::kAllSlices), 1);
  EXPECT_DOUBLE_EQ(all.share_told(7), 0.15);  // slices 0, 8 and 16
  constexpr L2Cache::Lines kLines{.first = 1000, .count = 40'000};
  const L2Cache::Touched told = all.touch(kLines, L2Cache::Use::write);
  const L2Cache::Touched sample = some.touch(kLines, L2Cache::Use::write, 7);
  EXPECT_GT(told.written_back_bytes, 25'000 * kLineBytes);
  EXPECT_NEAR(static_cast<double>(sample.written_back_bytes) / (0.15 * static_cast<double>(told.written_back_bytes)), 1,
              0.02);
}

}  // namespace
}  // namespace weft
