// Series of bounded length: nothing is lost when bins double.
#include "sim/time_bins.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft {
namespace {

TEST(TimeBins, KeepsWhatComesInItsBin) {
  TimeBins bins;
  bins.add(0, 3);
  bins.add(2, 4);
  bins.add(0, 1);
  EXPECT_EQ(bins.amounts(0), (std::vector<std::int64_t>{4, 0, 4}));
  EXPECT_EQ(bins.amounts(1), (std::vector<std::int64_t>{4, 4}));
}

TEST(TimeBins, DoublesWhenTheRunOutgrowsThemAndLosesNothing) {
  TimeBins bins;
  std::int64_t sum = 0;
  for (std::int64_t bin = 0; bin < 5 * kMostTimeBins; bin += 7) {
    bins.add(bin, bin);
    sum += bin;
  }
  const std::vector<std::int64_t> amounts = bins.amounts(0);  // wider already: 8 shortest bins each
  EXPECT_EQ(amounts.size(), 5 * kMostTimeBins / 8);
  EXPECT_EQ(std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0}), sum);
  EXPECT_EQ(amounts[0], 7);
  EXPECT_EQ(amounts[1], 14);
  EXPECT_EQ(bins.amounts(4).size(), 5 * kMostTimeBins / 16);
}

TEST(TimeBins, AreAsWideAsARunNeeds) {
  EXPECT_EQ(time_bin_doublings(kShortestTimeBin), 0);
  EXPECT_EQ(time_bin_doublings(kShortestTimeBin * kMostTimeBins), 0);
  EXPECT_EQ(time_bin_doublings(kShortestTimeBin * kMostTimeBins + Time(1)), 1);
  EXPECT_EQ(time_bin_doublings(kShortestTimeBin * (8 * kMostTimeBins)), 3);
}

}  // namespace
}  // namespace weft
