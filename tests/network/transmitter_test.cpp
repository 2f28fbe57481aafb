// The sending end of a link: exact times, credits, order.
#include "network/transmitter.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sim/error.h"

namespace weft {
namespace {

// 16 B flits at 16 GB/s: a flit is 1 ns.
LinkSpec link(std::uint32_t credits = 4) {
  LinkSpec spec;
  spec.bandwidth = gigabytes_per_second(16);
  spec.latency = nanoseconds(100);
  spec.credits = credits;
  return spec;
}

Packet packet(PacketKind kind, std::uint32_t line, std::uint8_t payload, std::uint8_t lane = 0) {
  Packet p;
  p.kind = kind;
  p.line = line;
  p.payload = payload;
  p.lane = lane;
  return p;
}

struct Bench {
  explicit Bench(const LinkSpec& spec, std::uint32_t lanes = 1) : transmitter(spec, lanes, wires) {}
  // The start of the transmission, if it is known.
  std::optional<Time> submit(const Packet& p, Time ready, std::uint32_t held_by = 0) {
    Time start;
    if (!transmitter.submit(p, ready, held_by, start)) return std::nullopt;
    return start;
  }
  std::vector<Departure> credit(Time when, VirtualChannel channel, std::uint8_t lane = 0) {
    std::vector<Departure> departures;
    transmitter.receive_credit({when, lane, channel}, departures);
    return departures;
  }
  std::vector<Packet> sent() {
    wires.packets.flip();
    std::vector<Packet> packets;
    wires.packets.receive([&](const Packet& p) { packets.push_back(p); });
    return packets;
  }
  LinkWires wires;
  Transmitter transmitter;
};

TEST(Transmitter, CountsFlitsOfHeaderAndPayload) {
  const LinkTiming timing(link());
  EXPECT_EQ(timing.of(packet(PacketKind::read, 0, 0)).wire_bytes, 16U);
  EXPECT_EQ(timing.of(packet(PacketKind::flag, 0, 1)).wire_bytes, 32U);
  EXPECT_EQ(timing.of(packet(PacketKind::write, 0, 128)).wire_bytes, 144U);
  EXPECT_EQ(timing.of(packet(PacketKind::write, 0, 113)).wire_bytes, 144U);
  EXPECT_EQ(timing.of(packet(PacketKind::write, 0, 112)).wire_bytes, 128U);
}

TEST(Transmitter, AcknowledgementsShareAFlit) {
  LinkSpec spec = link();
  spec.acknowledge_flits = 0.25;
  const LinkTiming timing(spec);
  Packet done = packet(PacketKind::acknowledge, 0, 0);
  done.count = 2;
  EXPECT_EQ(timing.of(done).wire_bytes, 8U);
  done.count = 8;
  EXPECT_EQ(timing.of(done).wire_bytes, 32U);
  EXPECT_EQ(timing.of(done).time, transfer_time(Bytes(32), spec.bandwidth));
}

TEST(Transmitter, PacketsArriveAfterSerialisationAndLatencyToTheFemtosecond) {
  LinkSpec spec = link();
  spec.bandwidth = gigabytes_per_second(25);
  spec.framing_efficiency = 0.94;  // 23.5 GB/s: 144 B take 6127660 fs
  Bench bench(spec);
  EXPECT_EQ(bench.submit(packet(PacketKind::write, 1, 128), Time(5)), Time(5));
  EXPECT_EQ(bench.submit(packet(PacketKind::write, 2, 128), Time(6)), Time(5 + 6'127'660));
  const auto sent = bench.sent();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].when, Time(5 + 6'127'660) + nanoseconds(100));
  EXPECT_EQ(sent[1].when, Time(5 + 2 * 6'127'660) + nanoseconds(100));
}

TEST(Transmitter, LanesAreIndependent) {
  Bench bench(link(), 2);
  EXPECT_EQ(bench.submit(packet(PacketKind::write, 1, 128, 0), Time(0)), Time(0));
  EXPECT_EQ(bench.submit(packet(PacketKind::write, 2, 128, 1), Time(0)), Time(0));
  EXPECT_EQ(bench.transmitter.statistics(0).packets, 1);
  EXPECT_EQ(bench.transmitter.statistics(1).packets, 1);
}

TEST(Transmitter, StallsWithoutCreditAndResumesAtTheCreditsTime) {
  Bench bench(link(2));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 2, 128), Time(0)));
  EXPECT_FALSE(bench.submit(packet(PacketKind::write, 3, 128), Time(0), 42));
  EXPECT_EQ(bench.transmitter.waiting(), 1U);
  EXPECT_EQ(bench.sent().size(), 2U);
  const auto departures = bench.credit(nanoseconds(500) + Time(1), VirtualChannel::request);
  ASSERT_EQ(departures.size(), 1U);
  EXPECT_EQ(departures[0].held_by, 42U);
  EXPECT_EQ(departures[0].start, nanoseconds(500) + Time(1));
  EXPECT_EQ(bench.transmitter.waiting(), 0U);
  const auto sent = bench.sent();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].when, nanoseconds(500) + Time(1) + nanoseconds(9) + nanoseconds(100));
}

TEST(Transmitter, ACreditThatIsAnnouncedEarlyIsUsedNoEarlierThanItsTime) {
  Bench bench(link(1));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_TRUE(bench.credit(nanoseconds(300), VirtualChannel::request).empty());
  EXPECT_EQ(bench.submit(packet(PacketKind::write, 2, 128), nanoseconds(50)), nanoseconds(300));
}

TEST(Transmitter, OneVirtualChannelPassesTheOtherThatHasNoCredit) {
  Bench bench(link(1));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_FALSE(bench.submit(packet(PacketKind::write, 2, 128), Time(0)));
  EXPECT_EQ(bench.submit(packet(PacketKind::read_reply, 3, 128), Time(0)), nanoseconds(9));
  EXPECT_FALSE(bench.submit(packet(PacketKind::acknowledge, 4, 0), Time(0)));
  const auto departures = bench.credit(nanoseconds(50), VirtualChannel::response);
  ASSERT_EQ(departures.size(), 1U);
  EXPECT_EQ(departures[0].packet.line, 4U);
  EXPECT_EQ(bench.transmitter.waiting(), 1U);  // the request waits on
}

TEST(Transmitter, ALaneIsNotReservedForAPacketWhoseCreditComesLater) {
  Bench bench(link(1));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_FALSE(bench.submit(packet(PacketKind::write, 2, 128), Time(0)));
  const auto departures = bench.credit(nanoseconds(300), VirtualChannel::request);
  ASSERT_EQ(departures.size(), 1U);
  EXPECT_EQ(departures[0].start, nanoseconds(300));
  // The lane is idle from 9 ns to 300 ns: a response goes there, and one that does not fit goes behind.
  EXPECT_EQ(bench.submit(packet(PacketKind::read_reply, 3, 128), nanoseconds(20)), nanoseconds(20));
  bench.credit(nanoseconds(25), VirtualChannel::response);
  EXPECT_EQ(bench.submit(packet(PacketKind::read_reply, 4, 128), nanoseconds(25)), nanoseconds(29));
  bench.credit(nanoseconds(26), VirtualChannel::response);
  EXPECT_EQ(bench.submit(packet(PacketKind::read_reply, 5, 128), nanoseconds(292)), nanoseconds(309));
}

TEST(Transmitter, KeepsTheOrderOfALaneAndChannel) {
  Bench bench(link(1));
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(bench.submit(packet(PacketKind::write, i, 128), Time(0)).has_value(), i == 0);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.credit(nanoseconds(10) * i, VirtualChannel::request).size(), 1U);
  }
  const auto sent = bench.sent();
  ASSERT_EQ(sent.size(), 5U);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(sent[i].line, i);
    if (i > 0) {
      EXPECT_GE(sent[i].when, sent[i - 1].when + nanoseconds(9));
    }
  }
}

TEST(Transmitter, RefusesMoreCreditsThanTheReceiverHasPlaces) {
  Bench bench(link(2));
  EXPECT_THROW(bench.credit(Time(0), VirtualChannel::request), InternalError);
}

TEST(Transmitter, CountsBytesAndBusyTime) {
  Bench bench(link());
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_TRUE(bench.submit(packet(PacketKind::read, 2, 0), Time(0)));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 3, 128), microseconds(15)));
  const LaneStatistics& lane = bench.transmitter.statistics(0);
  EXPECT_EQ(lane.packets, 3);
  EXPECT_EQ(lane.payload_bytes, 256);
  EXPECT_EQ(lane.wire_bytes, 9 * 16 + 16 + 9 * 16);
  EXPECT_EQ(lane.busy, nanoseconds(19));
  EXPECT_EQ(lane.busiest(), nanoseconds(10));  // the first 10 us
}

TEST(Transmitter, CountsBusyTimeByWhenItWas) {
  Bench bench(link());
  bench.wires.load = std::make_unique<TimeBins>();
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 1, 128), Time(0)));
  EXPECT_TRUE(bench.submit(packet(PacketKind::read, 2, 0), Time(0)));
  EXPECT_TRUE(bench.submit(packet(PacketKind::write, 3, 128), kShortestTimeBin * 40));
  TimeBins load = *bench.wires.load;
  bench.transmitter.statistics(0).count_open_bin(load);
  const std::vector<std::int64_t> busy = load.amounts(0);
  ASSERT_EQ(busy.size(), 41U);
  EXPECT_EQ(busy[0], nanoseconds(10).count());
  EXPECT_EQ(busy[1], 0);
  EXPECT_EQ(busy[40], nanoseconds(9).count());
}

TEST(TransmitterFormula, ClosedLoopRateIsCreditsPerRoundTrip) {
  constexpr int kCredits = 8;
  constexpr int kPackets = 1000;
  Bench bench(link(kCredits));
  for (int i = 0; i < kPackets; ++i) {
    static_cast<void>(bench.submit(packet(PacketKind::write, static_cast<std::uint32_t>(i), 128), Time(0)));
  }
  Time last;
  int arrived = 0;
  while (arrived < kPackets) {
    const auto packets = bench.sent();
    ASSERT_FALSE(packets.empty());
    for (const Packet& p : packets) {  // a receiver that frees a place at once; the credit's way back is a latency
      last = p.when;
      ++arrived;
      bench.credit(p.when + nanoseconds(100), VirtualChannel::request);
    }
  }
  const double round_trip = 9 + 100 + 100;  // ns: serialisation and both ways; 8 packets of 9 ns do not fill it
  EXPECT_NEAR(to_seconds(last) * 1e9, round_trip * kPackets / kCredits, round_trip);
}

// A packet that stands for a train of four: a lane is busy for all, and who passes it on begins with the first.
TEST(Transmitter, PassesOnATrainFromItsFirstPacketOn) {
  LinkSpec spec = link();
  spec.train = 4;
  LinkWires wires;
  Transmitter source(std::make_shared<const LinkTiming>(spec), 1, wires);
  Time start;
  ASSERT_TRUE(source.submit(packet(PacketKind::write, 0, 112), Time(0), 0, start));  // 8 flits
  wires.packets.flip();
  wires.packets.receive([](const Packet& p) { EXPECT_EQ(p.when, nanoseconds(108)); });
  Transmitter hub(std::make_shared<const LinkTiming>(spec), 1, wires, true);
  ASSERT_TRUE(hub.submit(packet(PacketKind::write, 0, 112), Time(0), 0, start));
  ASSERT_TRUE(hub.submit(packet(PacketKind::write, 1, 112), Time(0), 0, start));
  EXPECT_EQ(start, nanoseconds(8));
  wires.packets.flip();
  std::vector<Time> arrivals;
  wires.packets.receive([&](const Packet& p) { arrivals.push_back(p.when); });
  EXPECT_EQ(arrivals, (std::vector<Time>{nanoseconds(102), nanoseconds(110)}));
}

}  // namespace
}  // namespace weft
