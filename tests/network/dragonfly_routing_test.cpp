// Dragonflies: the shortest ways with one global link, over all links between two groups, and that no cycle of channels
// can close.
#include "network/dragonfly_routing.h"

#include <gtest/gtest.h>

#include "tests/network/channel_dependencies.h"
#include "tests/network/fabric_bench.h"
#include "tests/network/follow_routes.h"

namespace weft {
namespace {

NetworkSpec dragonfly(std::uint32_t gpus_per_router, std::uint32_t routers, std::uint32_t global_links) {
  NetworkSpec spec = fabric_of(TopologyKind::dragonfly);
  spec.dragonfly = {gpus_per_router, routers, global_links};
  return spec;
}

// Of a network of 8 GPUs a group, from the cables alone: routers on the shortest way with at most one global link.
std::uint32_t fewest_routers(const Network& network, std::uint16_t from, std::uint16_t to) {
  const Topology& topology = network.topology;
  const std::uint32_t first = topology.neighbour(from, 0);
  const std::uint32_t last = topology.neighbour(to, 0);
  if (first == last) return 1;
  if (from / 8 == to / 8) return 2;
  const std::uint32_t first_router = topology.neighbour(0, 0);
  const auto group = [&](std::uint32_t node) { return node < first_router ? ~0U : (node - first_router) / 4; };
  std::uint32_t fewest = 5;
  for (const Cable& cable : topology.cables()) {
    for (const auto& [exit, entry] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      if (group(exit) != group(first) || group(entry) != group(last)) continue;
      fewest = std::min(fewest, 2U + (exit != first ? 1 : 0) + (entry != last ? 1 : 0));
    }
  }
  return fewest;
}

TEST(DragonflyRouting, TakesTheShortestWaysWithOneGlobalLink) {
  for (const std::uint16_t gpus : std::initializer_list<std::uint16_t>{72, 50, 32, 24, 16, 8}) {
    const auto network = make_network(dragonfly(2, 4, 2), gpus);
    for (std::uint16_t a = 0; a < gpus; ++a) {
      for (std::uint16_t b = 0; b < gpus; ++b) {
        if (a == b) continue;
        EXPECT_EQ(routers_passed(*network, a, b), fewest_routers(*network, a, b)) << a << " to " << b << " of " << gpus;
        Dependencies ways;  // all of them
        ways.follow(*network, a, b);
        EXPECT_EQ(ways.longest, fewest_routers(*network, a, b)) << a << " to " << b << " of " << gpus;
      }
    }
  }
}

TEST(DragonflyRouting, ClosesNoCycleOfChannels) {
  for (const std::uint16_t gpus : std::initializer_list<std::uint16_t>{72, 32, 24, 16}) {
    const auto network = make_network(dragonfly(2, 4, 2), gpus);
    EXPECT_EQ(network->vc_classes.front(), 2U);
    EXPECT_FALSE(dependencies_of(*network, gpus).cyclic()) << gpus;
  }
}

// Two groups of four routers, each with two links to its partner: GPU 0's packets for one behind router 1 of the other
// group may cross first, by two links, or behind router 1 of its own, by as many.
TEST(DragonflyRouting, OffersAPortForEachGlobalLink) {
  const auto network = make_network(dragonfly(2, 4, 2), 16);
  const Topology& topology = network->topology;
  const std::uint32_t router = topology.neighbour(0, 0);
  Packet packet;
  packet.source = 0;
  packet.destination = 10;
  const Hops hops = network->routing(router).next(router, 0, packet);
  std::map<std::uint32_t, std::uint32_t> ways;  // by the next router
  for (std::uint16_t h = 0; h < hops.count; ++h) ++ways[topology.neighbour(router, hops.port(h)) - router];
  EXPECT_EQ(ways, (std::map<std::uint32_t, std::uint32_t>{{1, 2}, {4, 2}}));
  packet.destination = 8;
  EXPECT_EQ(network->routing(router).next(router, 0, packet).count, 2);
}

// Runs, not routers by routers: beside the own group, a few a group.
TEST(DragonflyRouting, TablesTakeARunOrThreeAGroup) {
  const auto network = make_network(dragonfly(4, 8, 4), 33 * 32);
  const auto& routing = dynamic_cast<const DragonflyRouting&>(network->routing(33 * 32));
  EXPECT_LT(routing.bytes(), 264U * 2 * (8 + 3 * 32) * 16);
}

}  // namespace
}  // namespace weft
