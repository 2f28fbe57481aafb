// Exact arithmetic of time, sizes and rates.
#include "sim/units.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Units, TransferTimesRoundUp) {
  EXPECT_EQ(transfer_time(Bytes(0), Bandwidth(1)), Time(0));
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth(kFsPerSecond)), Time(1));
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth(kFsPerSecond + 1)), Time(1));
  EXPECT_EQ(transfer_time(Bytes(1), Bandwidth(3)), Time(333'333'333'333'334));
  EXPECT_EQ(transfer_time(Bytes(144), gigabytes_per_second(25)), Time(5'760'000));
  EXPECT_EQ(transfer_time(Bytes(144), gigabytes_per_second(23.5)), Time(6'127'660));  // 6127659.57...
}

TEST(Units, TransferTimesOfTerabytesDoNotOverflow) {
  EXPECT_EQ(transfer_time(Bytes(1'000'000'000'000), gigabytes_per_second(1000)), seconds(1));
  EXPECT_EQ(transfer_time(Bytes(1'000'000'000'000), gigabytes_per_second(1)), seconds(1000));
}

TEST(Units, ConversionsKeepTheUnit) {
  EXPECT_EQ(nanoseconds(0.5), Time(500'000));
  EXPECT_EQ(microseconds(2), nanoseconds(2000));
  EXPECT_EQ(seconds(1), Time(kFsPerSecond));
  EXPECT_DOUBLE_EQ(to_seconds(microseconds(3)), 3e-6);
  EXPECT_EQ(megahertz(1830), Frequency(1'830'000'000));
}

TEST(Units, ClockEdgesDoNotDrift) {
  const Clock clock(megahertz(1410));  // a period of 709219.858... fs
  EXPECT_EQ(clock.edge(0), Time(0));
  EXPECT_EQ(clock.edge(1), Time(709'220));
  EXPECT_EQ(clock.edge(1'410'000'000), seconds(1));
  EXPECT_EQ(clock.edge(1'410'000'000LL * 3600), seconds(3600));
}

}  // namespace
}  // namespace weft
