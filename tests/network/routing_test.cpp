// Routes: how many routers a packet passes, which of equal paths it takes, what is left when links are out.
#include "network/routing.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "network/table_routing.h"
#include "sim/error.h"
#include "tests/network/fabric_bench.h"
#include "tests/network/follow_routes.h"

namespace weft {
namespace {

std::uint32_t ring_distance(std::uint32_t a, std::uint32_t b, std::uint32_t k) {
  const std::uint32_t d = a > b ? a - b : b - a;
  return std::min(d, k - d);
}

TEST(RoutingFormula, MeshTakesTheManhattanDistance) {
  NetworkSpec spec = fabric_of(TopologyKind::mesh);
  spec.dimensions = {5, 3};
  const auto network = make_network(spec, 15);
  for (std::uint16_t a = 0; a < 15; ++a) {
    for (std::uint16_t b = 0; b < 15; ++b) {
      if (a == b) continue;
      const int distance = std::abs(a % 5 - b % 5) + std::abs(a / 5 - b / 5);
      EXPECT_EQ(routers_passed(*network, a, b), static_cast<std::uint32_t>(distance) + 1) << a << " to " << b;
    }
  }
}

TEST(RoutingFormula, TorusTakesTheShorterWayRoundInEachDimension) {
  NetworkSpec spec = fabric_of(TopologyKind::torus);
  spec.dimensions = {4, 3, 2};
  const auto network = make_network(spec, 24);
  for (std::uint16_t a = 0; a < 24; ++a) {
    for (std::uint16_t b = 0; b < 24; ++b) {
      if (a == b) continue;
      const std::uint32_t distance = ring_distance(a % 4U, b % 4U, 4) + ring_distance(a / 4U % 3, b / 4U % 3, 3) +
                                     ring_distance(a / 12U, b / 12U, 2);
      EXPECT_EQ(routers_passed(*network, a, b), distance + 1) << a << " to " << b;
    }
  }
}

TEST(RoutingFormula, HypercubeTakesTheHammingDistance) {
  const auto network = make_network(fabric_of(TopologyKind::hypercube), 16);
  for (std::uint16_t a = 0; a < 16; ++a) {
    for (std::uint16_t b = 0; b < 16; ++b) {
      if (a == b) continue;
      EXPECT_EQ(routers_passed(*network, a, b),
                static_cast<std::uint32_t>(std::popcount(static_cast<unsigned>(a ^ b))) + 1);
    }
  }
}

// Dally and Seitz: with the channels of a ring in the order in which they are used, no packet goes back.
TEST(Routing, TorusChangesClassOnceAtTheDateline) {
  NetworkSpec spec = fabric_of(TopologyKind::ring);
  const auto network = make_network(spec, 9);
  for (std::uint16_t a = 0; a < 9; ++a) {
    for (std::uint16_t b = 0; b < 9; ++b) {
      if (a == b) continue;
      std::vector<std::uint8_t> classes;
      routers_passed(*network, a, b, &classes);
      classes.pop_back();  // to the GPU
      const std::uint32_t up = (b + 9U - a) % 9;
      const bool crosses = up <= 4 ? b < a : b > a;
      const std::set<std::uint8_t> used(classes.begin(), classes.end());
      EXPECT_TRUE(std::is_sorted(classes.begin(), classes.end()));
      EXPECT_LE(used.size(), crosses ? 2U : 1U) << a << " to " << b;
      EXPECT_TRUE(!crosses || classes.front() == 0);
    }
  }
}

TEST(Routing, TwoLevelTreePassesOneOrThreeSwitches) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 2, .radix = 8};
  const auto network = make_network(spec, 30);  // eight leaves of four, the last one half full
  EXPECT_EQ(network->topology.count(TopologyNodeKind::router), 8U + 4U);
  for (std::uint16_t a = 0; a < 30; ++a) {
    for (std::uint16_t b = 0; b < 30; ++b) {
      if (a != b) {
        EXPECT_EQ(routers_passed(*network, a, b), a / 4 == b / 4 ? 1U : 3U);
      }
    }
  }
}

TEST(Routing, ThreeLevelTreeOfSwitchesOfEightPortsHas128Gpus) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 3, .radix = 8};
  const auto network = make_network(spec, 128);
  EXPECT_EQ(network->topology.count(TopologyNodeKind::router), 32U + 32U + 16U);  // k^2/2 and k^2/2 and k^2/4
  for (std::uint16_t a = 0; a < 128; a += 5) {
    for (std::uint16_t b = 0; b < 128; ++b) {
      if (a == b) continue;
      EXPECT_EQ(routers_passed(*network, a, b), a / 4 == b / 4 ? 1U : (a / 16 == b / 16 ? 3U : 5U));
    }
  }
  EXPECT_THROW(make_network(spec, 129), InputError);
}

TEST(Routing, OversubscriptionTakesPortsFromTheWayUp) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 2, .radix = 12, .oversubscription = 2};
  const auto network = make_network(spec, 96);
  EXPECT_EQ(network->topology.count(TopologyNodeKind::router), 12U + 4U);
  EXPECT_EQ(routers_passed(*network, 0, 95), 3U);
  spec.tree.radix = 10;
  EXPECT_THROW(make_network(spec, 8), InputError);
}

TEST(Routing, HybridCubeMeshHasSixLinksAGpuAndAtMostOneGpuBetween) {
  const auto network = make_network(fabric_of(TopologyKind::hybrid_cube_mesh), 8);
  std::vector<std::uint32_t> links(16, 0);
  for (const Cable& cable : network->topology.cables()) {
    if (cable.a < 8) continue;
    links[cable.a] += cable.lanes;
    links[cable.b] += cable.lanes;
  }
  for (std::size_t router = 8; router < 16; ++router) EXPECT_EQ(links[router], 6U);
  for (std::uint16_t a = 0; a < 8; ++a) {
    for (std::uint16_t b = 0; b < 8; ++b) {
      if (a != b) {
        EXPECT_LE(routers_passed(*network, a, b), 3U);
      }
    }
  }
}

NetworkSpec square_graph() {
  NetworkSpec spec = fabric_of(TopologyKind::graph);
  for (const char* name : {"a", "b", "c", "d"}) {
    spec.graph.nodes.push_back({std::string("gpu-") + name, true});
    spec.graph.nodes.push_back({name, false});
    spec.graph.links.push_back({.from = std::string("gpu-") + name, .to = name});
  }
  spec.graph.links.push_back({.from = "a", .to = "b"});
  spec.graph.links.push_back({.from = "b", .to = "c"});
  spec.graph.links.push_back({.from = "c", .to = "d"});
  spec.graph.links.push_back({.from = "d", .to = "a"});
  return spec;
}

TEST(Routing, AGraphIsRoutedUpThenDownOrByShortestPaths) {
  NetworkSpec spec = square_graph();
  auto network = make_network(spec, 4);
  EXPECT_EQ(network->vc_classes.front(), 1U);
  EXPECT_EQ(routers_passed(*network, 0, 2), 3U);
  spec.routing.graph = GraphRoutes::shortest_path;
  network = make_network(spec, 4);
  EXPECT_EQ(network->vc_classes.front(), 2U);  // routes of two hops
  std::vector<std::uint8_t> classes;
  EXPECT_EQ(routers_passed(*network, 1, 3, &classes), 3U);
  EXPECT_EQ(classes[0], 0);
  EXPECT_EQ(classes[1], 1);
}

std::string error_of(const NetworkSpec& spec, std::uint32_t gpus) {
  try {
    static_cast<void>(make_network(spec, gpus));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Routing, NamesWhatIsWrongWithAGraph) {
  NetworkSpec spec = square_graph();
  spec.graph.links[0].to = "z";
  EXPECT_EQ(error_of(spec, 4), "/network/graph/links/0/to: expected the name of a node, got \"z\"");
  spec = square_graph();
  spec.graph.links.resize(5);  // only a and b are joined
  EXPECT_NE(
      error_of(spec, 4).find("/network/graph: expected a network in which all GPUs reach each other, got no route"),
      std::string::npos);
  EXPECT_EQ(error_of(square_graph(), 5), "/network/graph/nodes: expected places for 5 GPUs (max_gpus), got 4");
}

TEST(Routing, NamesWhatIsWrongWithADimension) {
  NetworkSpec spec = fabric_of(TopologyKind::mesh);
  spec.dimensions = {4, 4};
  EXPECT_EQ(error_of(spec, 17), "/network/dimensions: expected places for 17 GPUs (max_gpus), got 16");
}

TEST(Routing, GoesAroundALinkThatIsOut) {
  NetworkSpec spec = fabric_of(TopologyKind::mesh);
  spec.dimensions = {3, 3};
  spec.faults = {{"router4->router5", 0}};
  const auto network = make_network(spec, 9);
  for (std::uint16_t a = 0; a < 9; ++a) {
    for (std::uint16_t b = 0; b < 9; ++b) {
      if (a == b) continue;
      const std::uint32_t passed = routers_passed(*network, a, b);
      EXPECT_GE(passed, 1U);
      EXPECT_LE(passed, 7U);
    }
  }
  EXPECT_EQ(routers_passed(*network, 4, 5), 4U);
  EXPECT_EQ(routers_passed(*network, 5, 4), 2U);  // the other direction works
}

TEST(Routing, ATreeGoesAroundASpineThatDoesNotReachALeaf) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 2, .radix = 4};
  spec.faults = {{"router4->router1", 0}};  // spine 0 to leaf 1
  const auto network = make_network(spec, 8);
  for (std::uint16_t a = 0; a < 8; ++a) {
    for (std::uint16_t b = 0; b < 8; ++b) {
      if (a != b) {
        EXPECT_EQ(routers_passed(*network, a, b), a / 2 == b / 2 ? 1U : 3U);
      }
    }
  }
}

TEST(Routing, RefusesFaultsThatCutAGpuOffOrNameNoLink) {
  NetworkSpec spec = fabric_of(TopologyKind::mesh);
  spec.dimensions = {2, 1};
  spec.faults = {{"router0->router1", 0}};
  EXPECT_NE(error_of(spec, 2).find("/network/faults: expected a network in which all GPUs reach each other"),
            std::string::npos);
  spec.faults = {{"gpu0->router0", 0}};
  EXPECT_NE(error_of(spec, 2).find("got one without gpu0->router0"), std::string::npos);
  spec.faults = {{"router0->router7", 0}};
  EXPECT_NE(error_of(spec, 2).find("/network/faults/0/link: expected a link"), std::string::npos);
  spec.faults = {{"router0->router1.3", 0}};
  EXPECT_NE(error_of(spec, 2).find("expected a lane below 1"), std::string::npos);
}

TEST(Routing, TablesOfATreeTakeARunAPort) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 3, .radix = 16};
  const auto network = make_network(spec, 1024);
  const std::uint32_t routers = network->topology.count(TopologyNodeKind::router);
  const TableRouting table(network->topology, GraphRoutes::up_down, 1024, routers, {});
  EXPECT_LT(table.bytes(), routers * 16U * 100U);  // of all by all, 4 MB and more
}

}  // namespace
}  // namespace weft
