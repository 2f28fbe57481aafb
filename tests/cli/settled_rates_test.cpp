// How fast groups of warps go on, from two windows.
#include "cli/sampled/settled_rates.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Values = std::vector<double>;

SettledRates of(const Values& before, const Values& last, std::vector<std::uint64_t> kinds = {}) {
  kinds.resize(before.size());
  return settled_rates(kinds, before, last);
}

TEST(SettledRates, GroupsThatAreSlowerInBothWindowsStaySo) {
  const SettledRates found = of({1, 1, 2, 2}, {1, 1, 2, 2});
  EXPECT_EQ(found.rates, Values({1, 1, 2, 2}));
  EXPECT_EQ(found.scatter, 0);
}

TEST(SettledRates, WhoIsAheadInOneWindowIsSoByChance) {
  const SettledRates found = of({1, 3, 2, 2}, {3, 1, 2, 2});
  EXPECT_EQ(found.rates, Values({2, 2, 2, 2}));
  EXPECT_EQ(found.scatter, 0);  // as a kind, they go as fast
}

// Windows differ by 0.2 either way, groups by 1: the part of the spread that is not noise stays.
TEST(SettledRates, OfBothAShareStays) {
  const SettledRates found = of({1.1, 0.9, 2.1, 1.9}, {0.9, 1.1, 1.9, 2.1});
  const double own = 1 - 4 * 0.01 / (4 * 0.25);
  EXPECT_NEAR(found.rates[0], 1.5 - own * 0.5, 1e-12);
  EXPECT_NEAR(found.rates[3], 1.5 + own * 0.5, 1e-12);
}

TEST(SettledRates, KindsAreApart) {
  const SettledRates found = of({1, 1, 4}, {1, 1, 6}, {7, 7, 8});
  EXPECT_EQ(found.rates, Values({1, 1, 5}));
  EXPECT_NEAR(found.scatter, 0.2, 1e-12);
}

}  // namespace
}  // namespace weft
