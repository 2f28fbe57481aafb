// Which slots are taken: order, gaps, the window's end.
#include "gpu_model/slot_calendar.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Calendar = SlotCalendar<2>;  // sees 128 slots

TEST(SlotCalendar, TakesTheFirstFreeSlots) {
  Calendar calendar;
  EXPECT_EQ(calendar.take(10, 4), 13);
  EXPECT_EQ(calendar.take(10, 4), 17);
  EXPECT_EQ(calendar.take(12, 1), 18);
  EXPECT_EQ(calendar.tail(), 19);
}

TEST(SlotCalendar, FillsTheGapsThatOthersLeft) {
  Calendar calendar;
  calendar.take(20, 4);
  EXPECT_EQ(calendar.take(17, 4), 24);  // three before, one behind
  EXPECT_EQ(calendar.take(10, 4), 13);
  EXPECT_EQ(calendar.first_free(10), 14);
}

TEST(SlotCalendar, ContinuesInTheNextWord) {
  Calendar calendar;
  EXPECT_EQ(calendar.take(62, 4), 65);
  EXPECT_EQ(calendar.take(60, 3), 66);
}

TEST(SlotCalendar, ClosedSlotsAreNobodys) {
  Calendar calendar;
  calendar.close(5, 70);
  EXPECT_EQ(calendar.take(3, 4), 71);
  EXPECT_EQ(calendar.work_end(), 4);  // closed slots are no work
}

TEST(SlotCalendar, FindsReopenedSlotsBeforeThoseThatAreFull) {
  Calendar calendar;
  EXPECT_EQ(calendar.take(0, 8), 7);
  calendar.close(8, 12);
  EXPECT_EQ(calendar.take(0, 8), 19);
  calendar.reopen(8, 12);
  EXPECT_EQ(calendar.first_free(0), 8);
  EXPECT_EQ(calendar.take(0, 6), 21);  // four before, two behind
  EXPECT_EQ(calendar.first_free(0), 22);
}

TEST(SlotCalendar, ForgetsThePast) {
  Calendar calendar;
  for (int i = 0; i < 32; ++i) calendar.take(0, 4);
  EXPECT_EQ(calendar.work_end(), 128);
  EXPECT_TRUE(calendar.advance(64));
  EXPECT_FALSE(calendar.advance(80));
  EXPECT_EQ(calendar.work_end(), 128);
  EXPECT_EQ(calendar.take(0, 4), 131);
  EXPECT_TRUE(calendar.advance(10'000));
  EXPECT_EQ(calendar.take(10'000, 1), 10'000);
}

TEST(SlotCalendar, ServesInOrderWhatLiesBeyondTheWindow) {
  Calendar calendar;
  EXPECT_EQ(calendar.take(200, 4), 203);
  EXPECT_EQ(calendar.take(150, 4), 207);
  EXPECT_EQ(calendar.take(100, 4), 103);
  calendar.advance(128);
  EXPECT_EQ(calendar.take(200, 1), 208);  // and the places are kept
}

}  // namespace
}  // namespace weft
