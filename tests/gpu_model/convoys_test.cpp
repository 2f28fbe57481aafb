#include "gpu_model/convoys.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// Of two crowds of 24 blocks, in which 8 stream other lines than the rest; in `time` each has done so many rounds of
// 100 lines.
Convoys after(double time, double rounds_of_most, double rounds_of_eight) {
  Convoys convoys;
  for (int block = 0; block < 16; ++block) convoys.add({2, 0, 7}, 100 * rounds_of_most, time, rounds_of_most);
  for (int block = 0; block < 8; ++block) convoys.add({2, 0, 8}, 100 * rounds_of_eight, time, rounds_of_eight);
  convoys.add({1, 0, 7}, 100 * 99, time, 99);
  return convoys;
}

TEST(Convoys, GoAtTheirOwnPaceOnceItIsSeen) {
  const Convoys convoys = after(1000, 20, 14);  // on average 18
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 7}), 2.0);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 8}), 1.4);
}

TEST(Convoys, GoAsTheirCrowdWhileItMayBeChance) {
  const Convoys convoys = after(1000, 20, 18.5);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 7}), 1.95);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 8}), 1.95);
}

TEST(Convoys, OfFewBlocksGoAsTheirCrowd) {
  Convoys convoys = after(1000, 20, 20);
  for (int block = 0; block < 4; ++block) convoys.add({2, 0, 9}, 4000, 1000, 40);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 9}), (24 * 2.0 + 4 * 4.0) / 28);
}

TEST(Convoys, TheOldestOfAUnitMayComeFirst) {
  Convoys convoys;
  for (LineAddress block = 0; block < 4; ++block) {
    convoys.add({4, 0, block}, 2000, 1000, 20);
    convoys.add({4, 1, 100 + block}, 500, 1000, 5);
  }
  EXPECT_DOUBLE_EQ(convoys.rate({4, 0, 3}), 2.0);
  EXPECT_DOUBLE_EQ(convoys.rate({4, 1, 100}), 0.5);
}

TEST(Convoys, CrowdsAreApart) { EXPECT_DOUBLE_EQ(after(1000, 20, 14).rate({1, 0, 7}), 9.9); }

}  // namespace
}  // namespace weft
