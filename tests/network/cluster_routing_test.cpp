// Routes between the nodes of a cluster: NICs, leaf switches, rails; and those that come back to who stands for others.
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

// A leaf or two, or a pod, whose GPUs stand for all of a fat tree: as many routers on the way as if all were there.
TEST(Routing, WhatLeavesABranchThatStandsForAllComesBackToIt) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  for (const std::uint32_t levels : {2U, 3U}) {
    spec.tree = {.levels = levels, .radix = 6, .oversubscription = levels - 1, .rails = false};
    const std::uint32_t branch = levels == 2 ? 3 : 12;
    ASSERT_EQ(gpus_of_branch(spec), branch);
    const auto whole = make_network(spec, 4 * branch);
    for (const std::uint32_t there : {branch, 2 * branch}) {
      const auto part = make_network(spec, there, {}, 4 * branch);
      EXPECT_EQ(part->topology.count(TopologyNodeKind::gpu), there);
      for (std::uint16_t a = 0; a < there; ++a) {
        for (std::uint16_t b = 0; b < 4 * branch; ++b) {
          if (a == b) continue;
          const auto stand_in = static_cast<std::uint16_t>(b % there);
          EXPECT_EQ(routers_passed(*part, a, b, nullptr, stand_in), routers_passed(*whole, a, b)) << a << " to " << b;
        }
      }
    }
  }
}

TEST(Routing, OnlyFatTreesOfGpusHaveBranches) {
  EXPECT_EQ(gpus_of_branch(fabric_of(TopologyKind::mesh)), 0);
  EXPECT_EQ(gpus_of_branch(cluster(false, 1)), 0);
}

}  // namespace
}  // namespace weft
