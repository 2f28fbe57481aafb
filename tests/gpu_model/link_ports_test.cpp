// Which lane a packet takes, and whose it is where some GPUs stand for all.
#include "gpu_model/link_ports.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

// Of GPU 1 of 4, with a bundle of `lanes` to a router, `each` for each GPU.
std::set<std::uint32_t> lanes_to(std::uint16_t destination, std::uint32_t lanes, std::uint32_t each) {
  LinkSpec spec;
  spec.bandwidth = gigabytes_per_second(25);
  const auto timing = std::make_shared<const LinkTiming>(spec);
  LinkWires in;
  LinkWires out;
  const std::vector<std::shared_ptr<const LinkTiming>> all(lanes, timing);
  const LinkPorts ports({.kind = LinkPlan::Kind::router, .gpus = 4, .lanes_for_each = each}, GpuId{1},
                        {{&in, &out, all}});
  std::set<std::uint32_t> taken;
  for (LineAddress line = 0; line < 1000; ++line) taken.insert(ports.lane_of(line, destination).lane);
  return taken;
}

TEST(LinkPorts, EachGpuBehindARouterHasLanesOfItsOwnWhereTheyAreKeptForIt) {
  EXPECT_EQ(lanes_to(0, 8, 2), (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(lanes_to(3, 8, 2), (std::set<std::uint32_t>{6, 7}));
  EXPECT_EQ(lanes_to(3, 4, 1), (std::set<std::uint32_t>{3}));
}

TEST(LinkPorts, OthersAreSharedByAddress) {
  EXPECT_EQ(lanes_to(0, 3, 0), (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lanes_to(3, 3, 0), (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lanes_to(3, 8, 0).size(), 8U);
}

// What a GPU with such a link takes in.
Packet received(PacketKind kind, std::uint16_t source, std::uint16_t destination, const LinkPlan& plan, GpuId self) {
  Packet sent;
  sent.kind = kind;
  sent.source = source;
  sent.destination = destination;
  LinkSpec spec;
  spec.bandwidth = gigabytes_per_second(25);
  LinkWires in;
  LinkWires out;
  LinkPorts ports(plan, self, {{&in, &out, {std::make_shared<const LinkTiming>(spec)}}});
  in.packets.send(sent);
  in.packets.flip();
  Packet got;
  ports.receive([&](const Packet& packet, std::uint32_t) { got = packet; });
  return got;
}

// GPU 1 of `there` that stand for 12.
Packet received(PacketKind kind, std::uint16_t source, std::uint16_t destination, std::uint32_t there) {
  return received(kind, source, destination, {.kind = LinkPlan::Kind::router, .gpus = 12, .there = there}, GpuId{1});
}

// GPU 3 of 4 sends to GPU 5, for which GPU 1 stands: to GPU 1, that is what GPU 11 sends, and the answer finds its way.
TEST(LinkPorts, WhatIsForOthersComesFromAsFarAway) {
  const Packet request = received(PacketKind::write, 3, 5, 4);
  EXPECT_EQ(request.source, 11);
  EXPECT_EQ(request.destination, 1);
  const Packet answer = received(PacketKind::acknowledge, 5, 3, 4);
  EXPECT_EQ(answer.source, 1);
  EXPECT_EQ(answer.destination, 11);
}

TEST(LinkPorts, WhatComesBackByALinkIsFromTheOtherEnd) {
  for (const LinkPlan::Kind kind : {LinkPlan::Kind::peers, LinkPlan::Kind::router}) {
    const LinkPlan plan{.kind = kind, .gpus = 8, .there = 1, .loops = true};
    const Packet request = received(PacketKind::write, 0, 3, plan, GpuId{0});
    EXPECT_EQ(request.source, 3);
    EXPECT_EQ(request.destination, 0);
    const Packet answer = received(PacketKind::acknowledge, 3, 0, plan, GpuId{0});
    EXPECT_EQ(answer.source, 0);
    EXPECT_EQ(answer.destination, 3);
  }
}

TEST(LinkPorts, WhatIsForItselfStaysAsItIs) {
  for (const std::uint32_t there : {4U, 0U}) {
    const Packet own = received(PacketKind::write, 3, 1, there);
    EXPECT_EQ(own.source, 3);
    EXPECT_EQ(own.destination, 1);
  }
}

}  // namespace
}  // namespace weft
