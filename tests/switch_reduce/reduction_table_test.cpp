// The reduction table by itself.
#include "switch_reduce/reduction_table.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/network/switch_bench.h"
#include "tests/switch_reduce/small_table.h"

namespace weft {
namespace {

const Packet kRequest = packet_of(PacketKind::multicast_read, 0, 0);
const Packet kReply = packet_of(PacketKind::partial_reply, 0, 1);

TEST(ReductionTable, FillsByPortAndFreesOnClose) {
  ReductionTable reducer(table(), 2);
  EXPECT_EQ(reducer.entries_per_port(), 3U);
  std::vector<std::uint32_t> entries;
  for (int i = 0; i < 3; ++i) {
    const auto entry = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
    ASSERT_TRUE(entry);
    for (const std::uint32_t other : entries) EXPECT_NE(*entry, other);
    entries.push_back(*entry);
  }
  EXPECT_EQ(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)), std::nullopt);
  EXPECT_TRUE(reducer.open(1, kRequest, 2, DataType::fp32, Time(0)));  // the other port's table is its own
  reducer.close(entries[1], Time(0));
  EXPECT_EQ(reducer.occupied(0), 2U);
  EXPECT_TRUE(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)));
  EXPECT_EQ(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)), std::nullopt);
}

TEST(ReductionTable, FixedOrderKeepsAllAndAddsThemAtTheEnd) {
  ReduceSpec spec = table(8);
  spec.accumulation.order = AccumulationOrder::fixed;
  ReductionTable reducer(spec, 4, 4);  // an entry keeps three lines beside the sum
  EXPECT_EQ(ReductionTable::entry_bytes(spec, 4), 512U);
  EXPECT_EQ(reducer.entries_per_port(), 2U);
  const auto entry = reducer.open(0, kRequest, 3, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.statistics().table_high_water_bytes, 512);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(200)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(300)), nanoseconds(300 + 3 + 10));
}

TEST(ReductionTable, RemembersTheFullestPort) {
  ReductionTable reducer(table(), 2);
  const auto first = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
  static_cast<void>(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)));
  static_cast<void>(reducer.open(1, kRequest, 2, DataType::fp32, Time(0)));
  reducer.close(*first, Time(0));
  EXPECT_EQ(reducer.statistics().table_high_water_bytes, 2 * 128);
}

TEST(ReductionTable, TheLastReplySaysWhenTheSumIsReady) {
  ReductionTable reducer(table(), 2);
  const auto entry = reducer.open(0, kRequest, 3, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(200)), std::nullopt);
  EXPECT_EQ(reducer.statistics().reduced_bytes, 0);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(300)), nanoseconds(300 + 1 + 10));
  EXPECT_EQ(reducer.statistics().reduced_bytes, 128);
  EXPECT_THROW(static_cast<void>(reducer.add(*entry, kReply, nanoseconds(400))), InternalError);
}

TEST(ReductionTable, AddersServeOneReplyAfterAnother) {
  ReductionTable reducer(table(), 2);
  const auto a = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
  const auto b = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), nanoseconds(100 + 3 + 10));
  EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), nanoseconds(100 + 4 + 10));
}

TEST(ReductionTable, CloseGivesBackTheRequest) {
  ReductionTable reducer(table(), 2);
  Packet request = kRequest;
  request.line = 42;
  request.agent = 7;
  const Packet answered = reducer.close(*reducer.open(1, request, 2, DataType::fp32, Time(0)), Time(0));
  EXPECT_EQ(answered.line, 42U);
  EXPECT_EQ(answered.agent, 7U);
}

TEST(ReductionTable, NarrowElementsTakeAsManyLanesAsTheyHave) {
  ReductionTable reducer(table(), 1);
  const auto wide = reducer.open(0, kRequest, 1, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.add(*wide, kReply, nanoseconds(100)), nanoseconds(100 + 1 + 10));  // 32 of 4 B
  const auto narrow = reducer.open(0, kRequest, 1, DataType::fp16, Time(0));
  EXPECT_EQ(reducer.add(*narrow, kReply, nanoseconds(200)), nanoseconds(200 + 1 + 10));  // 64 of 2 B
  const auto scalar = reducer.open(0, kRequest, 1, DataType::bf16, Time(0));
  EXPECT_EQ(reducer.add(*scalar, kReply, nanoseconds(300)), nanoseconds(300 + 2 + 10));  // 64 of 2 B, 32 at a time
}

TEST(ReductionTable, EachPortHasAddersOfItsOwn) {
  ReduceSpec spec = table();
  for (const std::uint32_t adders : {1U, 2U}) {
    spec.adders.per_port = adders;
    ReductionTable reducer(spec, 2);
    const auto a = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
    const auto b = reducer.open(1, kRequest, 1, DataType::fp32, Time(0));
    EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), std::nullopt);
    EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), nanoseconds(100 + 1 + 10));
    EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), nanoseconds(100 + (adders == 1 ? 2 : 1) + 10));
  }
}

TEST(ReductionTable, AGroupHasItsShareOfAPort) {
  ReduceSpec spec = table();
  spec.group_entries = 2;
  ReductionTable reducer(spec, 1);
  const auto open = [&](std::uint16_t group) {
    return reducer.open(0, packet_of(PacketKind::multicast_read, 0, group), 2, DataType::fp32, Time(0));
  };
  const auto first = open(7);
  EXPECT_TRUE(open(7));
  EXPECT_FALSE(open(7));
  EXPECT_TRUE(open(8));
  reducer.close(*first, Time(0));
  EXPECT_TRUE(open(7));
}

Packet push_of(std::uint32_t line, std::uint16_t group = 0) {
  Packet packet = packet_of(PacketKind::push, 0, group, line);
  packet.payload = 128;
  return packet;
}

TEST(ReductionTable, APushedSumIsCompleteWhenAllHaveCome) {
  ReductionTable reducer(table(), 1);
  const auto push = [&](std::uint32_t line, std::uint16_t group, double ns) {
    return reducer.push(0, push_of(line, group), 3, DataType::fp32, nanoseconds(ns));
  };
  const auto first = push(5, 0, 100).entry;
  EXPECT_NE(push(6, 0, 101).entry, first);  // another line
  EXPECT_NE(push(5, 1, 102).entry, first);  // another group
  EXPECT_EQ(push(5, 0, 200).ready, std::nullopt);
  const Pushed last = push(5, 0, 300);
  EXPECT_EQ(last.entry, first);
  EXPECT_EQ(last.ready, nanoseconds(300 + 1 + 10));
  EXPECT_EQ(reducer.close(*last.entry, nanoseconds(311)).count, 3);
  EXPECT_EQ(reducer.occupied(), 2U);
}

TEST(ReductionTable, TheLeastRecentlyUsedPushedSumGivesWay) {
  ReductionTable reducer(table(), 1);
  const auto push = [&](std::uint32_t line, double ns) {
    return reducer.push(0, push_of(line), 3, DataType::fp32, nanoseconds(ns));
  };
  for (const std::uint32_t line : {1U, 2U, 3U}) EXPECT_FALSE(push(line, 100 * line).evicted);
  EXPECT_FALSE(push(1, 400).evicted);  // now line 2 is the oldest
  const Pushed fourth = push(4, 500);
  ASSERT_TRUE(fourth.evicted);
  EXPECT_EQ(fourth.evicted->line, 2U);
  EXPECT_EQ(fourth.evicted->count, 1);
  const Pushed again = push(2, 600);  // what comes later opens a sum of its own
  ASSERT_TRUE(again.evicted);
  EXPECT_EQ(again.evicted->line, 3U);
  EXPECT_EQ(reducer.statistics().evicted, 2);
  EXPECT_EQ(reducer.occupied(), 3U);
}

TEST(ReductionTable, APushedSumThatWaitsTooLongIsTaken) {
  ReduceSpec spec = table();
  spec.timeout = nanoseconds(1000);
  ReductionTable reducer(spec, 1);
  static_cast<void>(reducer.push(0, push_of(1), 3, DataType::fp32, nanoseconds(100)));
  static_cast<void>(reducer.push(0, push_of(2), 3, DataType::fp32, nanoseconds(200)));
  static_cast<void>(reducer.push(0, push_of(1), 3, DataType::fp32, nanoseconds(300)));
  EXPECT_EQ(reducer.next_timeout(0), nanoseconds(1200));
  EXPECT_FALSE(reducer.take_timed_out(0, nanoseconds(1199)));
  EXPECT_EQ(reducer.take_timed_out(0, nanoseconds(1200))->line, 2U);
  EXPECT_EQ(reducer.next_timeout(0), nanoseconds(1300));
  EXPECT_EQ(reducer.take_timed_out(0, nanoseconds(1300))->count, 2);
  EXPECT_EQ(reducer.next_timeout(0), std::nullopt);
  EXPECT_EQ(reducer.statistics().timed_out, 2);
}

TEST(ReductionTable, HoldsAtLeastOneEntry) { EXPECT_THROW(ReductionTable(table(0), 2), InternalError); }

}  // namespace
}  // namespace weft
