#include "gpu_model/store_credits.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace weft {
namespace {

TEST(StoreCredits, GiveBackAtTheEndOfTheirGrain) {
  StoreCredits credits(100);  // 64
  EXPECT_TRUE(credits.empty());
  ASSERT_TRUE(credits.add(65, 3));
  ASSERT_TRUE(credits.add(70, 2));
  ASSERT_TRUE(credits.add(128, 1));
  EXPECT_EQ(credits.next(), 128);
  EXPECT_EQ(credits.take(127), 0U);
  EXPECT_EQ(credits.take(128), 5U);
  EXPECT_EQ(credits.next(), 192);
  EXPECT_EQ(credits.take(1000), 1U);
  EXPECT_TRUE(credits.empty());
}

TEST(StoreCredits, RefuseWhatIsTooFarFromWhatTheyHave) {
  StoreCredits credits(64);
  ASSERT_TRUE(credits.add(64 * 100, 4));
  EXPECT_FALSE(credits.add(64 * 164, 4));
  EXPECT_TRUE(credits.add(64 * 99, 4));
  EXPECT_FALSE(credits.add(64 * 163, 4));
  EXPECT_FALSE(credits.add(64 * 36, 4));
  EXPECT_TRUE(credits.add(64 * 162, 4));
  EXPECT_EQ(credits.next(), 64 * 100);
  EXPECT_EQ(credits.take(64 * 200), 12U);
  EXPECT_TRUE(credits.add(64 * 1000, 4));
}

// Against a queue by time: never too early, at most a grain late, and nothing is lost.
TEST(StoreCredits, AreThoseOfAQueue) {
  constexpr SubCycle kGrain = 256;
  StoreCredits credits(kGrain);
  using One = std::pair<SubCycle, std::uint32_t>;
  std::priority_queue<One, std::vector<One>, std::greater<>> model;
  std::mt19937 random(3);
  SubCycle now = 0;
  std::uint32_t free = 0;    // that must be
  std::uint32_t may_be = 0;  // at most
  std::uint32_t taken = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += random() % 1000;
    const SubCycle when = now + 1 + random() % 10'000;
    const std::uint32_t count = 1 + random() % 4;
    if (credits.add(when, count)) model.emplace(when, count);
    taken += credits.take(now);
    for (; !model.empty() && model.top().first + kGrain <= now; model.pop()) free += model.top().second;
    may_be = free;
    for (auto rest = model; !rest.empty() && rest.top().first <= now; rest.pop()) may_be += rest.top().second;
    ASSERT_GE(taken, free);
    ASSERT_LE(taken, may_be);
  }
  EXPECT_GT(taken, 40'000U);
}

}  // namespace
}  // namespace weft
