// Queues of routers: one for each output, and who goes first.
#include <gtest/gtest.h>

#include <array>

#include "tests/network/fabric_bench.h"

namespace weft {
namespace {

constexpr std::uint32_t kWriteFlits = 5;  // a header and 128 B in flits of 32 B

// GPU 0 sends in turns to GPU 1, whom two others keep busy, and to GPU 2: a third of a lane each, or what is left of
// it.
TEST(RouterQueuesFormula, WhoWaitsForABusyOutputHoldsUpNobodyElseInQueuesOfItsOwn) {
  constexpr std::uint32_t kPackets = 60;
  for (const bool virtual_output_queues : {false, true}) {
    NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 4 * kPackets);
    spec.tree = {.levels = 2, .radix = 16};
    spec.switch_.virtual_output_queues = virtual_output_queues;
    FabricBench bench(spec, 8);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      bench.send(0, 1, i, Time(0));
      bench.send(0, 2, i, Time(0));
      bench.send(3, 1, kPackets + i, Time(0));
      bench.send(4, 1, kPackets + i, Time(0));
    }
    bench.run(microseconds(20));
    ASSERT_EQ(bench.ends[1]->arrived.size(), 3 * kPackets);
    const std::vector<Packet>& free = bench.ends[2]->arrived;
    ASSERT_EQ(free.size(), kPackets);
    for (std::uint32_t i = 0; i < kPackets; ++i) EXPECT_EQ(free[i].line, i);  // in order
    const Time serial = kFlit * kWriteFlits;
    const double took = to_seconds(free.back().when - unloaded(1, kWriteFlits)) / to_seconds(serial);
    // The link to GPU 0's router brings one every other packet time.
    EXPECT_NEAR(took, virtual_output_queues ? 2 * kPackets : 3 * kPackets, 4);
    EXPECT_FALSE(bench.holds_packets());
  }
}

// GPUs 0 and 1 send to GPU 2 by the link from router 1. In a mesh they share it; round a ring GPU 0 is on its way.
TEST(RouterQueuesFormula, WhatIsOnARingGoesBeforeWhatComesOntoIt) {
  constexpr std::uint32_t kPackets = 60;
  for (const TopologyKind topology : {TopologyKind::mesh, TopologyKind::ring}) {
    NetworkSpec spec = fabric_of(topology, 4 * kPackets);
    spec.dimensions = {5};
    FabricBench bench(spec, 5);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      bench.send(0, 2, 2 * i, Time(0));
      bench.send(1, 2, 2 * i, Time(0));
    }
    bench.run(microseconds(20));
    const std::vector<Packet>& arrived = bench.ends[2]->arrived;
    ASSERT_EQ(arrived.size(), 2 * kPackets);
    const auto is_through = [](const Packet& packet) { return packet.source == 0; };
    const auto last = std::find_if(arrived.rbegin(), arrived.rend(), is_through);
    const auto serial = to_seconds(kFlit * kWriteFlits);
    // The first one has one more hop to go.
    const double took = to_seconds(last->when - unloaded(3, kWriteFlits)) / serial;
    EXPECT_NEAR(took, topology == TopologyKind::ring ? kPackets : 2 * kPackets, 10);
  }
}

// The same in a mesh, where GPU 1 has four lanes to its router and four times as much to send: they have a turn
// together, and in it take turns.
TEST(RouterQueuesFormula, LanesOfAGpuAreNoWeightAgainstWhatComesByALink) {
  constexpr std::uint32_t kPackets = 60;
  constexpr std::uint32_t kLanes = 4;
  NetworkSpec spec = fabric_of(TopologyKind::mesh, 4 * kPackets);
  spec.dimensions = {5};
  spec.injection_lanes = kLanes;
  FabricBench bench(spec, 5);
  for (std::uint32_t i = 0; i < kPackets; ++i) bench.send(0, 2, 2 * i, Time(0));
  for (std::uint32_t i = 0; i < kLanes * kPackets; ++i) {
    Packet packet;
    packet.kind = PacketKind::write;
    packet.source = 1;
    packet.destination = 2;
    packet.line = i;
    packet.agent = i % kLanes;
    packet.lane = static_cast<std::uint8_t>(i % kLanes);
    packet.payload = 128;
    bench.ends[1]->send(packet, Time(0));
  }
  bench.run(microseconds(40));
  const std::vector<Packet>& arrived = bench.ends[2]->arrived;
  ASSERT_EQ(arrived.size(), (kLanes + 1) * kPackets);
  std::uint32_t through = 0;
  std::array<std::uint32_t, kLanes> by_lane{};
  for (const Packet& packet : arrived) {
    if (packet.source == 0 && ++through == kPackets) break;
    if (packet.source == 1) ++by_lane[packet.agent];
  }
  for (const std::uint32_t lane : by_lane) EXPECT_NEAR(lane, kPackets / kLanes, 4);
}

}  // namespace
}  // namespace weft
