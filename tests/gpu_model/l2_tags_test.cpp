// The tags of the L2: they grow without losing a line, tell lines apart, and name what they evict.
#include "gpu_model/l2_tags.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weft {
namespace {

constexpr std::uint32_t kSlices = 3;
constexpr std::uint32_t kSets = 5 * 64;
constexpr std::uint32_t kWays = 4;
constexpr std::int64_t kLines = 1 << 22;

bool touch(L2Tags& tags, std::uint32_t slice, std::uint32_t line, L2Tags::Inserted* inserted = nullptr) {
  L2Tags::Address at = tags.address(slice, line);
  L2Tags::Way* way = tags.find(at);
  const bool hit = way != nullptr;
  if (!hit) {
    const L2Tags::Inserted fresh = tags.insert(at, slice, line);
    way = fresh.way;
    if (inserted != nullptr) *inserted = fresh;
  }
  *way |= 1U << 4 | 1U;
  return hit;
}

TEST(L2Tags, HoldAllLinesUntilTheyAreFull) {
  L2Tags tags(kSlices, kSets, kWays, kLines, 2);
  for (std::uint32_t line = 0; line < kSets * kWays / 2; ++line) {  // half full: evenly spread, nothing is evicted
    for (std::uint32_t slice = 0; slice < kSlices; ++slice) {
      L2Tags::Inserted inserted;
      EXPECT_FALSE(touch(tags, slice, line, &inserted));
      EXPECT_EQ(inserted.evicted, 0U);
    }
  }
  for (std::uint32_t line = 0; line < kSets * kWays / 2; ++line) EXPECT_TRUE(touch(tags, 1, line)) << line;
}

TEST(L2Tags, NameTheLineThatTheyEvict) {
  L2Tags tags(kSlices, kSets, kWays, kLines, 2);
  std::mt19937 random(1);
  std::set<std::uint32_t> held;
  for (int i = 0; i < 50'000; ++i) {
    const std::uint32_t line = random() % kLines;
    L2Tags::Inserted inserted;
    const bool hit = touch(tags, 2, line, &inserted);
    EXPECT_EQ(hit, held.count(line) == 1);
    held.insert(line);
    if (inserted.evicted != 0) {
      EXPECT_EQ(held.erase(inserted.evicted_line), 1U);
    }
  }
  EXPECT_EQ(held.size(), kSets * kWays);
}

TEST(L2Tags, TakeMemoryAsLinesCome) {
  L2Tags tags(kSlices, kSets, kWays, kLines, 2);
  const std::size_t idle = tags.bytes();
  for (std::uint32_t line = 0; line < 50; ++line) touch(tags, 0, line);
  EXPECT_LE(tags.bytes(), 4 * idle);
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; ++i) touch(tags, 0, random() % kLines);
  EXPECT_EQ(tags.bytes(), 16 * idle);
}

TEST(L2Tags, ReachTheMemoriesOfLargeGpus) {
  EXPECT_TRUE(L2Tags::reach(256, (std::int64_t{192} << 30) / 128 / 128));  // MI300X: 128 slices of 256 sets at least
  EXPECT_TRUE(L2Tags::reach(320, (std::int64_t{180} << 30) / 128 / 80));
  EXPECT_FALSE(L2Tags::reach(1, std::int64_t{1} << 23));
}

}  // namespace
}  // namespace weft
