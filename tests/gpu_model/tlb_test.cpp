// Translation of addresses: what a TLB holds, walks, and what they do to kernels.
#include "gpu_model/tlb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr std::int64_t kPage = 64 << 10;
constexpr LineAddress kPageLines = kPage / 128;

TEST(Tlb, ForgetsTheLeastRecentlyUsedPage) {
  Tlb tlb(4, kPage);
  for (LineAddress page = 0; page < 4; ++page) EXPECT_FALSE(tlb.find(page * kPageLines).hit);
  EXPECT_TRUE(tlb.find(0).hit);
  EXPECT_TRUE(tlb.find(kPageLines - 1).hit);
  EXPECT_FALSE(tlb.find(4 * kPageLines).hit);  // page 1 goes
  EXPECT_TRUE(tlb.find(0).hit);
  EXPECT_FALSE(tlb.find(1 * kPageLines).hit);
}

// Sets double as pages come: the same pages are forgotten as if all sets had been there from the start.
TEST(Tlb, ForgetsTheSameWhileItGrows) {
  constexpr std::uint32_t kSets = 12;  // 3, 6 and 12 of them
  constexpr std::uint32_t kWays = 16;
  Tlb tlb(kSets * kWays, kPage);
  std::vector<std::deque<std::uint32_t>> sets(kSets);  // most recently used first
  std::minstd_rand random(1);
  int misses_of_known = 0;
  std::set<std::uint32_t> known;
  for (int i = 0; i < 20000; ++i) {
    const auto page = static_cast<std::uint32_t>(random() % (1 + static_cast<unsigned>(i) / 20));  // 1000 at the end
    std::deque<std::uint32_t>& set = sets[page % kSets];
    const auto at = std::ranges::find(set, page);
    const bool held = at != set.end();
    if (held) set.erase(at);
    if (!held && set.size() == kWays) set.pop_back();
    set.push_front(page);
    ASSERT_EQ(tlb.find(page * kPageLines).hit, held) << i;
    misses_of_known += !held && !known.insert(page).second ? 1 : 0;
  }
  EXPECT_GT(misses_of_known, 100);
}

TEST(Tlb, KnowsWhichGroupsEnterAPage) {
  const Tlb tlb(4, kPage);
  EXPECT_TRUE(tlb.enters_page(kPageLines, 4));
  EXPECT_TRUE(tlb.enters_page(kPageLines - 2, 4));
  EXPECT_FALSE(tlb.enters_page(kPageLines - 4, 4));
  EXPECT_FALSE(tlb.enters_page(kPageLines + 4, 4));
}

TEST(PageTable, WalksWaitForAWalker) {
  PageTable table({.page = kPage, .entries = 16, .latency_cycles = 10, .walk_latency_cycles = 100, .walks = 2});
  EXPECT_EQ(table.translate(0, 0), cycles(std::int64_t{110}));
  EXPECT_EQ(table.translate(kPageLines, 0), cycles(std::int64_t{110}));
  EXPECT_EQ(table.translate(2 * kPageLines, 0), cycles(std::int64_t{210}));
  EXPECT_EQ(table.translate(5, cycles(std::int64_t{20})), cycles(std::int64_t{110}));  // on its way
  EXPECT_EQ(table.translate(5, cycles(std::int64_t{500})), cycles(std::int64_t{510}));
  EXPECT_EQ(table.walks(), 3);
}

GpuSpec with_tlb() {
  GpuSpec spec = small_gpu();
  spec.compute_units = 1;
  spec.compute_unit.tlb_entries = 4;
  spec.l2.tlb = {.unit_page = kPage,
                 .page = 4 * kPage,
                 .entries = 16,
                 .latency_cycles = 50,
                 .walk_latency_cycles = 700,
                 .walks = 4};
  return spec;
}

// Each block reads one line, `stride` bytes behind that of the one before.
KernelDemand striding(std::uint32_t blocks, std::uint64_t stride) {
  KernelDemand demand = grid_of(blocks, 32);
  // Slices of `stride` bytes, of which the scale takes a line.
  demand.reads = {{.base = 0, .bytes_per_block = stride}};
  demand.memory_scale = 128.0 / static_cast<double>(stride);
  return demand;
}

double duration_of(const GpuSpec& spec, const std::vector<KernelDemand>& demands) {
  std::vector<ProgramOp> ops;
  for (const KernelDemand& demand : demands) ops.push_back(kernel_op(demand));
  AloneGpu alone(spec, program_of(ops));
  alone.run();
  return alone.duration(ops.size() - 1);
}

TEST(PageTable, AKernelPaysForItsFirstAccessToAPage) {
  KernelDemand one = striding(1, 128);
  KernelDemand neighbour = one;
  neighbour.reads[0].base = 4096;  // another row, the same page
  const double bare = duration_of(small_gpu(), {one});
  EXPECT_EQ(duration_of(with_tlb(), {one}), bare + 50 + 700);
  EXPECT_EQ(duration_of(with_tlb(), {one, neighbour}), bare);
  neighbour.reads[0].base = kPage;  // the GPU's TLB covers four pages of the unit's
  EXPECT_EQ(duration_of(with_tlb(), {one, neighbour}), bare + 50);
}

TEST(PageTable, StridesBeyondItsReachWalkForEachAccess) {
  GpuSpec physical = with_tlb();
  physical.compute_unit.tlb_entries = 0;
  const auto slower = [&](std::uint64_t stride) {
    // The second pass: what fits is known.
    const KernelDemand demand = striding(512, stride);
    return duration_of(with_tlb(), {demand, demand}) / duration_of(physical, {demand, demand});
  };
  EXPECT_LT(slower(128), 1.05);                             // one page
  EXPECT_GT(slower(static_cast<std::uint64_t>(kPage)), 2);  // 512 pages: more than 16 of four each
}

TEST(PageTable, StreamingHardlyNoticesIt) {
  KernelDemand demand = grid_of(256);
  demand.iterations = 8;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 1 << 14}};
  GpuSpec physical = with_tlb();
  physical.compute_unit.tlb_entries = 0;
  EXPECT_LT(duration_of(with_tlb(), {demand}) / duration_of(physical, {demand}), 1.05);
}

}  // namespace
}  // namespace weft
