// Values that travel beside packets.
#include "network/payloads.h"

#include <gtest/gtest.h>

#include "sim/error.h"

namespace weft {
namespace {

LineValues line_of(int value) {
  LineValues line{};
  line[0] = static_cast<std::byte>(value);
  return line;
}

Packet packet_of(PacketKind kind, std::uint16_t destination, LineAddress line = 7) {
  Packet packet;
  packet.kind = kind;
  packet.source = 1;
  packet.destination = destination;
  packet.line = line;
  packet.agent = 4;
  return packet;
}

TEST(Payloads, GoWithTheirPacket) {
  Payloads payloads({});
  const LineValues first = line_of(1);
  const LineValues second = line_of(2);
  payloads.put(packet_of(PacketKind::write, 2), 7, &first);
  payloads.put(packet_of(PacketKind::write, 3), 7, &second);
  EXPECT_EQ(payloads.take(packet_of(PacketKind::write, 3), 7), second);
  EXPECT_EQ(payloads.take(packet_of(PacketKind::write, 2), 7), first);
  EXPECT_EQ(payloads.under_way(), 0U);
  EXPECT_THROW(static_cast<void>(payloads.take(packet_of(PacketKind::write, 2), 7)), InternalError);
}

TEST(Payloads, AMulticastIsTakenByEachOfItsGroup) {
  Payloads payloads({2, 3});
  const LineValues values = line_of(5);
  payloads.put(packet_of(PacketKind::multicast_write, 1), 7, &values);  // to group 1
  for (std::uint16_t member = 0; member < 3; ++member) {
    EXPECT_EQ(payloads.under_way(), 1U);
    LineValues got{};
    payloads.take(packet_of(PacketKind::multicast_write, member), 7, got);
    EXPECT_EQ(got, values);
  }
  EXPECT_EQ(payloads.under_way(), 0U);
}

TEST(Payloads, ThatAreLateFollow) {
  Payloads payloads({2});
  payloads.put(packet_of(PacketKind::multicast_write, 0), 7, nullptr);
  LineValues early{};
  LineValues late{};
  payloads.take(packet_of(PacketKind::multicast_write, 0), 7, early);
  EXPECT_EQ(early, LineValues{});
  payloads.fill(packet_of(PacketKind::multicast_write, 0), 7, line_of(3));
  EXPECT_EQ(early, line_of(3));
  payloads.take(packet_of(PacketKind::multicast_write, 1), 7, late);
  EXPECT_EQ(late, line_of(3));
  EXPECT_EQ(payloads.under_way(), 0U);
}

TEST(Payloads, TwoThatCouldBeTakenForEachOtherAreABrokenInvariant) {
  Payloads payloads({});
  const LineValues values = line_of(1);
  payloads.put(packet_of(PacketKind::write, 2), 7, &values);
  EXPECT_THROW(payloads.put(packet_of(PacketKind::write, 2), 7, &values), InternalError);
}

}  // namespace
}  // namespace weft
