// The switch: exact latencies, contention, multicast, credits, acknowledgements.
#include "network/switch.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/network/switch_bench.h"

namespace weft {
namespace {

constexpr Time kWrite = nanoseconds(9);  // 1 header flit and 8 of payload
constexpr Time kIn{1000LL << 19};

TEST(Switch, AUnicastTakesItsLatencyAndTheLinks) {
  SwitchBench bench(4);
  bench.send(0, packet_of(PacketKind::write, 0, 2), kIn);
  bench.advance(microseconds(10));
  ASSERT_EQ(bench.packets[2].size(), 1U);
  EXPECT_EQ(bench.packets[2][0].when, kIn + kSwitchLatency + kWrite + kLinkLatency);
  for (const std::size_t other : {0U, 1U, 3U}) EXPECT_TRUE(bench.packets[other].empty());
  ASSERT_EQ(bench.credits[0].size(), 1U);
  EXPECT_EQ(bench.credits[0][0].when, kIn + kSwitchLatency + kLinkLatency);
  EXPECT_EQ(bench.credits[0][0].channel, VirtualChannel::request);
  EXPECT_FALSE(bench.hub().holds_packets());
  EXPECT_EQ(bench.hub().next_activity(), Time::max());
}

TEST(Switch, RepliesGoToWhoAskedAndTheirCreditToWhoAnswered) {
  SwitchBench bench(4);
  bench.send(2, packet_of(PacketKind::read_reply, 0, 2), kIn);
  bench.send(3, packet_of(PacketKind::acknowledge, 1, 3), kIn);
  bench.advance(microseconds(10));
  EXPECT_EQ(bench.packets[0].size(), 1U);
  EXPECT_EQ(bench.packets[1].size(), 1U);
  ASSERT_EQ(bench.credits[2].size(), 1U);
  ASSERT_EQ(bench.credits[3].size(), 1U);
  EXPECT_EQ(bench.credits[2][0].channel, VirtualChannel::response);
}

TEST(Switch, ATimeBetweenTicksCostsLessThanATick) {
  SwitchBench bench(2);
  bench.send(0, packet_of(PacketKind::write, 0, 1), kIn + Time(1));
  bench.advance(microseconds(10));
  const Time unloaded = kIn + Time(1) + kSwitchLatency + kWrite + kLinkLatency;
  EXPECT_GE(bench.packets[1].at(0).when, unloaded);
  EXPECT_LT(bench.packets[1].at(0).when, unloaded + Time(1LL << 19));
}

TEST(Switch, PacketsForOneOutputAreSerialised) {
  SwitchBench bench(4);
  for (std::uint16_t source = 0; source < 3; ++source)
    bench.send(source, packet_of(PacketKind::write, source, 3, source), kIn);
  bench.advance(microseconds(10));
  ASSERT_EQ(bench.packets[3].size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const Packet& packet = bench.packets[3][static_cast<std::size_t>(i)];
    EXPECT_EQ(packet.line, static_cast<std::uint32_t>(i));  // of equal times by port
    EXPECT_EQ(packet.when, kIn + kSwitchLatency + kWrite * (i + 1) + kLinkLatency);
    EXPECT_EQ(bench.credits[static_cast<std::size_t>(i)].at(0).when, kIn + kSwitchLatency + kWrite * i + kLinkLatency);
  }
}

TEST(Switch, PacketsForDifferentOutputsDoNotMeet) {
  SwitchBench bench(4);
  bench.send(0, packet_of(PacketKind::write, 0, 2), kIn);
  bench.send(1, packet_of(PacketKind::write, 1, 3), kIn);
  bench.advance(microseconds(10));
  EXPECT_EQ(bench.packets[2].at(0).when, bench.packets[3].at(0).when);
}

TEST(Switch, AMulticastReachesAllAndReturnsOneCredit) {
  SwitchBench bench(4);
  bench.send(1, packet_of(PacketKind::multicast_write, 1, 0, 77), kIn);
  bench.advance(microseconds(10));
  for (std::uint16_t member = 0; member < 4; ++member) {
    ASSERT_EQ(bench.packets[member].size(), 1U);
    EXPECT_EQ(bench.packets[member][0].when, kIn + kSwitchLatency + kWrite + kLinkLatency);
    EXPECT_EQ(bench.packets[member][0].destination, member);
    EXPECT_EQ(bench.packets[member][0].line, 77U);
  }
  EXPECT_EQ(bench.credits[1].size(), 1U);
  EXPECT_EQ(bench.credits[0].size() + bench.credits[2].size() + bench.credits[3].size(), 0U);
  EXPECT_EQ(bench.hub().statistics().multicast_bytes, 128);
  EXPECT_EQ(bench.hub().statistics().packets, 1);
}

// Its destination is the number of a group, whose copies and acknowledgements name it.
TEST(Switch, AMulticastReachesItsGroupOnlyAndIsDoneWhenAllOfItHaveIt) {
  SwitchBench bench(4, bench_link(), nullptr, {{0, 1, 2, 3}, {1, 3}});
  bench.send(1, packet_of(PacketKind::multicast_write, 1, 1, 77), kIn);
  bench.advance(microseconds(10));
  EXPECT_TRUE(bench.packets[0].empty() && bench.packets[2].empty());
  for (const std::uint16_t member : {std::uint16_t{1}, std::uint16_t{3}}) {
    ASSERT_EQ(bench.packets[member].size(), 1U);
    Packet done = packet_of(PacketKind::acknowledge, 1, member);
    done.entry = bench.packets[member][0].entry;
    bench.send(member, done, microseconds(10 + member));
  }
  bench.packets[1].clear();
  bench.advance(microseconds(12));
  EXPECT_TRUE(bench.packets[1].empty());
  bench.advance(microseconds(20));
  EXPECT_EQ(bench.packets[1].size(), 1U);
}

TEST(Switch, AMulticastHoldsItsPlaceUntilTheLastCopyHasLeft) {
  SwitchBench bench(3);
  for (int i = 0; i < 3; ++i) bench.send(0, packet_of(PacketKind::write, 0, 2), kIn);
  bench.send(1, packet_of(PacketKind::multicast_write, 1, 0), kIn);
  bench.advance(microseconds(10));
  ASSERT_EQ(bench.credits[1].size(), 1U);
  EXPECT_EQ(bench.credits[1][0].when, kIn + kSwitchLatency + kWrite * 3 + kLinkLatency);
}

TEST(Switch, WaitsForTheCreditOfItsOutputAndHoldsThePlaceMeanwhile) {
  SwitchBench bench(2, bench_link(1));
  bench.send(0, packet_of(PacketKind::write, 0, 1, 1), kIn);
  bench.advance(kIn + kSwitchLatency + microseconds(1));
  bench.send(0, packet_of(PacketKind::write, 0, 1, 2), kIn + microseconds(1));
  bench.advance(kIn + microseconds(2));
  EXPECT_EQ(bench.packets[1].size(), 1U);
  EXPECT_EQ(bench.credits[0].size(), 1U);
  EXPECT_TRUE(bench.hub().holds_packets());
  EXPECT_EQ(bench.hub().next_activity(), Time::max());  // sleeps until the credit comes
  bench.give_credit(1, VirtualChannel::request, kIn + microseconds(3));
  bench.advance(kIn + microseconds(4));
  ASSERT_EQ(bench.packets[1].size(), 2U);
  EXPECT_EQ(bench.packets[1][1].when, kIn + microseconds(3) + kWrite + kLinkLatency);
  ASSERT_EQ(bench.credits[0].size(), 2U);
  EXPECT_EQ(bench.credits[0][1].when, kIn + microseconds(3) + kLinkLatency);
  EXPECT_FALSE(bench.hub().holds_packets());
}

TEST(Switch, CombinesTheAcknowledgementsOfAMulticast) {
  SwitchBench bench(4);
  for (std::uint16_t member = 0; member < 4; ++member) {
    Packet done = packet_of(PacketKind::acknowledge, 1, member);
    done.entry = 1;
    done.count = 3;
    bench.send(member, done, kIn + microseconds(member));
  }
  bench.advance(kIn + microseconds(3));
  int before_last = 0;
  for (const Packet& packet : bench.packets[1]) before_last += packet.count;
  EXPECT_LT(before_last, 3);  // not all three writes are done while one member is missing
  bench.advance(kIn + microseconds(10));
  int all = 0;
  for (const Packet& packet : bench.packets[1]) all += packet.count;
  EXPECT_EQ(all, 3);
  for (std::size_t member = 0; member < 4; ++member) EXPECT_EQ(bench.credits[member].size(), 1U);
}

TEST(Switch, RefusesToReduceWithoutAReducer) {
  SwitchBench bench(2);
  bench.send(0, packet_of(PacketKind::multicast_read, 0, 0), kIn);
  EXPECT_THROW(bench.advance(microseconds(10)), InternalError);
}

}  // namespace
}  // namespace weft
