#include "traces/late_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;

TraceOp op(TraceOpKind kind, std::uint32_t stream, double issued_us, double start_us, double duration_us) {
  TraceOp out;
  out.kind = kind;
  out.iteration = 0;
  out.stream = stream;
  out.issued = microseconds(issued_us);
  out.start = microseconds(start_us);
  out.duration = microseconds(duration_us);
  return out;
}
TraceOp kernel(double issued_us, double start_us, double duration_us, std::uint32_t stream = 7) {
  return op(TraceOpKind::kernel, stream, issued_us, start_us, duration_us);
}

TEST(LateStarts, AreThoseOfAnIdleDeviceAlone) {
  TraceRank rank;
  rank.ops = {kernel(0, 500, 10),        // what the device was at before is not known
              kernel(600, 650, 100),     // 50 us after its issue, the device idle: 30 more than launching takes
              kernel(610, 760, 10),      // 10 us behind the one before
              kernel(620, 840, 10),      // 70 us behind it
              kernel(700, 900, 500, 8),  // of another stream, 50 us behind what ran last
              kernel(800, 1450, 10)};    // behind the one of stream 8
  EXPECT_THAT(late_starts(rank),
              ElementsAre(Time(0), microseconds(30), Time(0), microseconds(50), microseconds(30), microseconds(30)));
}

TEST(LateStarts, CollectivesWaitForOthersAndHostWaitsAreNotOnTheDevice) {
  TraceRank rank;
  rank.ops = {kernel(0, 5, 10), op(TraceOpKind::collective, 20, 20, 900, 100),
              op(TraceOpKind::host_wait, 0, 1000, 1000, 500), kernel(1600, 1700, 10)};
  EXPECT_THAT(late_starts(rank), ElementsAre(Time(0), Time(0), Time(0), microseconds(80)));
}

TEST(LateStarts, OfTheFirstOperationSayThatTheDeviceWasBehind) {
  TraceRank rank;
  rank.ops = {op(TraceOpKind::host_wait, 0, 0, 0, 5), kernel(10, 520, 10, 8), kernel(20, 500, 10), kernel(30, 700, 10)};
  EXPECT_EQ(begun_late(rank), 2U);
  rank.ops[2].start = microseconds(40);  // launched as usual
  EXPECT_EQ(begun_late(rank), std::nullopt);
  rank.ops[2].start = microseconds(500);
  rank.ops[2].waits = {0};  // the host's own: nothing that the device waits for
  EXPECT_EQ(begun_late(rank), 2U);
  rank.ops[2].waits = {1};
  EXPECT_EQ(begun_late(rank), std::nullopt);
  rank.ops[2].waits = {};
  rank.ops[2].kind = TraceOpKind::collective;
  EXPECT_EQ(begun_late(rank), std::nullopt);
  EXPECT_EQ(begun_late(TraceRank{}), std::nullopt);
}

}  // namespace
}  // namespace weft
