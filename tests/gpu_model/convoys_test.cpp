#include "gpu_model/convoys.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// Of two crowds of 24 blocks, in which 8 stream other lines than the rest; in `time` each has done so many rounds.
Convoys after(double time, double rounds_of_most, double rounds_of_eight) {
  Convoys convoys;
  for (int block = 0; block < 16; ++block) convoys.add({2, 0, 7}, rounds_of_most, time);
  for (int block = 0; block < 8; ++block) convoys.add({2, 0, 8}, rounds_of_eight, time);
  convoys.add({1, 0, 7}, 99, time);
  return convoys;
}

TEST(Convoys, GoAtTheirOwnPaceOnceItIsSeen) {
  const Convoys convoys = after(1000, 20, 14);  // on average 18
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 7}), 0.020);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 8}), 0.014);
}

TEST(Convoys, GoAsTheirCrowdWhileItMayBeChance) {
  const Convoys convoys = after(1000, 20, 18.5);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 7}), 0.0195);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 8}), 0.0195);
}

TEST(Convoys, OfFewBlocksGoAsTheirCrowd) {
  Convoys convoys = after(1000, 20, 20);
  for (int block = 0; block < 4; ++block) convoys.add({2, 0, 9}, 40, 1000);
  EXPECT_DOUBLE_EQ(convoys.rate({2, 0, 9}), (24 * 0.020 + 4 * 0.040) / 28);
}

TEST(Convoys, TheOldestOfAUnitMayComeFirst) {
  Convoys convoys;
  for (LineAddress block = 0; block < 4; ++block) {
    convoys.add({4, 0, block}, 20, 1000);
    convoys.add({4, 1, 100 + block}, 5, 1000);
  }
  EXPECT_DOUBLE_EQ(convoys.rate({4, 0, 3}), 0.020);
  EXPECT_DOUBLE_EQ(convoys.rate({4, 1, 100}), 0.005);
}

// Two blocks keep the pipes of a unit busy; a third one waits for them.
TEST(Convoys, ThoseThatGoSideBySideStaySo) {
  Convoys convoys;
  for (LineAddress block = 0; block < 4; ++block) {
    convoys.add({6, 0, block}, 6.25, 1000);
    convoys.add({6, 1, 100 + block}, 5.75, 1000);
    convoys.add({6, 2, 200 + block}, 0, 1000);
  }
  EXPECT_DOUBLE_EQ(convoys.rate({6, 0, 3}), 0.006);
  EXPECT_DOUBLE_EQ(convoys.rate({6, 1, 103}), 0.006);
  EXPECT_DOUBLE_EQ(convoys.rate({6, 2, 200}), 0);
}

TEST(Convoys, CrowdsAreApart) { EXPECT_DOUBLE_EQ(after(1000, 20, 14).rate({1, 0, 7}), 0.099); }

}  // namespace
}  // namespace weft
