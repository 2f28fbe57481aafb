// Routes between the nodes of a cluster: NICs, leaf switches, rails.
#include <gtest/gtest.h>

#include "tests/network/fabric_bench.h"
#include "tests/network/follow_routes.h"

namespace weft {
namespace {

NetworkSpec cluster(bool rails, std::uint32_t nics) {
  NetworkSpec spec = fabric_of(TopologyKind::fully_connected);
  spec.links_per_gpu = 3;
  ClusterSpec cluster;
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = nics;
  cluster.nic_link = cluster.link = fabric_link();
  cluster.nic_latency = kRouter;
  cluster.switch_.latency = kRouter;
  cluster.tree = {.levels = 2, .radix = 8, .oversubscription = 1, .rails = rails};
  spec.cluster = cluster;
  return spec;
}

TEST(Routing, NodesOfAClusterReachEachOtherThroughTheirNics) {
  for (const std::uint32_t nics : {4U, 2U, 1U}) {
    const auto network = make_network(cluster(false, nics), 24);
    EXPECT_EQ(network->topology.count(TopologyNodeKind::nic), 6 * nics);
    for (std::uint16_t a = 0; a < 24; ++a) {
      for (std::uint16_t b = 0; b < 24; ++b) {
        if (a / 4 == b / 4) continue;
        const std::uint32_t leaf_a = a * nics / 4 / 4;
        const std::uint32_t leaf_b = b * nics / 4 / 4;
        EXPECT_EQ(routers_passed(*network, a, b), leaf_a == leaf_b ? 3U : 5U) << a << " to " << b;
      }
    }
  }
}

TEST(Routing, GpusOfOneRailMeetInOneSwitch) {
  const auto network = make_network(cluster(true, 4), 16);
  for (std::uint16_t a = 0; a < 16; ++a) {
    for (std::uint16_t b = 0; b < 16; ++b) {
      if (a / 4 != b / 4) {
        EXPECT_EQ(routers_passed(*network, a, b), a % 4 == b % 4 ? 3U : 5U);
      }
    }
  }
}

// Four nodes of 24 GPUs, of which the first stands for all: what GPU 1 sends to GPU 2 of another node reaches its own.
TEST(Routing, WhatLeavesANodeThatStandsForAllComesBackToIt) {
  for (const bool rails : {false, true}) {
    const auto network = make_network(cluster(rails, 4), 4, {}, 24);
    EXPECT_EQ(network->topology.count(TopologyNodeKind::gpu), 4);
    for (std::uint16_t a = 0; a < 4; ++a) {
      for (std::uint16_t b = 4; b < 24; ++b) {
        const bool one_switch = !rails || a == b % 4;
        EXPECT_EQ(routers_passed(*network, a, b, nullptr, b % 4), one_switch ? 3U : 5U) << a << " to " << b;
      }
    }
  }
}

}  // namespace
}  // namespace weft
