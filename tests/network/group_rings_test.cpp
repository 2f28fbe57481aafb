// Rings that know the network: they step along links, use none twice, and go through each node once.
#include "network/group_rings.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "network/collective_algorithm.h"
#include "network/network.h"
#include "network/schedule_check.h"

namespace weft {
namespace {

std::vector<GpuId> all(std::uint32_t gpus) {
  std::vector<GpuId> group;
  for (std::uint32_t g = 0; g < gpus; ++g) group.push_back(GpuId{g});
  return group;
}

NetworkSpec network_of(TopologyKind topology, std::vector<std::uint32_t> dimensions = {}) {
  NetworkSpec network;
  network.topology = topology;
  network.link.bandwidth = gigabytes_per_second(25);
  network.link.latency = nanoseconds(100);
  network.dimensions = std::move(dimensions);
  return network;
}

// How often a network's orders use each arc.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> arcs(const RingOrders& orders) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> uses;
  for (std::uint32_t c = 0; c < orders.cycles(); ++c) {
    for (std::uint32_t r = 0; r < orders.ranks(); ++r) ++uses[{r, orders.after(c, r, 1)}];
  }
  return uses;
}

// Links from the router of one GPU to that of the other.
std::uint32_t links(const Network& network, std::uint32_t from, std::uint32_t to) {
  const Topology& topology = network.topology;
  const std::uint32_t a = topology.neighbour(from, 0);
  const std::uint32_t b = topology.neighbour(to, 0);
  std::uint32_t lanes = 0;
  for (const Cable& cable : topology.cables()) {
    if ((cable.a == a && cable.b == b) || (cable.a == b && cable.b == a)) lanes += cable.lanes;
  }
  return lanes;
}

void expect_arcs_of(const NetworkSpec& spec, std::uint32_t gpus, std::uint32_t cycles) {
  const auto orders = rings_of_group(spec, gpus, all(gpus));
  ASSERT_NE(orders, nullptr);
  EXPECT_EQ(orders->cycles(), cycles);
  const auto network = make_network(spec, gpus);
  for (const auto& [arc, uses] : arcs(*orders)) {
    EXPECT_LE(uses, links(*network, arc.first, arc.second)) << arc.first << "->" << arc.second;
  }
}

TEST(GroupRings, OfAHybridCubeMeshUseAllSixLinksOfEachGpuBothWays) {
  const NetworkSpec spec = network_of(TopologyKind::hybrid_cube_mesh);
  expect_arcs_of(spec, 8, 6);  // 6 x 8 arcs: all of 24 links
}

// Half of a machine, as a small instance has it: two cycles both ways by its four links a GPU.
TEST(GroupRings, OfAPartOfAHybridCubeMeshUseTheLinksAmongIt) {
  const NetworkSpec spec = network_of(TopologyKind::hybrid_cube_mesh);
  expect_arcs_of(spec, 4, 4);
  expect_arcs_of(spec, 3, 2);
  const auto network = make_network(spec, 8);
  const GpuGroup others{GpuId{1}, GpuId{2}, GpuId{5}, GpuId{6}};
  const auto orders = rings_of_group(spec, 8, others);
  ASSERT_NE(orders, nullptr);
  for (const auto& [arc, uses] : arcs(*orders)) {
    EXPECT_LE(uses, links(*network, others[arc.first].value, others[arc.second].value));
  }
}

TEST(GroupRings, OfAPartOfOtherNetworksGoByLinksToo) {
  const auto of_four = rings_of_group(network_of(TopologyKind::fully_connected), 8, all(4));
  ASSERT_NE(of_four, nullptr);
  EXPECT_EQ(arcs(*of_four).size(), 12U);  // each to each
  const auto row = rings_of_group(network_of(TopologyKind::torus, {4, 4}), 16, all(4));
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->cycles(), 2U);
  EXPECT_EQ(row->after(0, 0, 1) == 1 ? row->after(1, 0, 1) : row->after(0, 0, 1), 3U);
  EXPECT_EQ(rings_of_group(network_of(TopologyKind::switched), 8, all(4)), nullptr);
}

TEST(GroupRings, OfGridsStepAlongLinksAndUseNoneTwice) {
  expect_arcs_of(network_of(TopologyKind::ring), 5, 2);
  expect_arcs_of(network_of(TopologyKind::torus, {4, 4}), 16, 4);
  expect_arcs_of(network_of(TopologyKind::torus, {5, 5}), 25, 4);
  expect_arcs_of(network_of(TopologyKind::torus, {3, 5}), 15, 2);
  expect_arcs_of(network_of(TopologyKind::torus, {5, 3, 3}), 45, 2);
  expect_arcs_of(network_of(TopologyKind::torus, {3, 4, 2}), 24, 2);
  expect_arcs_of(network_of(TopologyKind::mesh, {3, 4}), 12, 2);
  expect_arcs_of(network_of(TopologyKind::mesh, {4, 1, 3}), 12, 2);
  expect_arcs_of(network_of(TopologyKind::mesh, {2, 3, 3}), 18, 2);
  expect_arcs_of(network_of(TopologyKind::hypercube), 16, 2);
}

// Of orders, whether they step from the one GPU to the other or back.
bool join(const RingOrders& orders, std::uint32_t a, std::uint32_t b) {
  const auto uses = arcs(orders);
  return uses.contains({a, b}) || uses.contains({b, a});
}

TEST(GroupRings, AvoidLinksThatAreOut) {
  NetworkSpec spec = network_of(TopologyKind::hybrid_cube_mesh);
  spec.faults = {{"router0->router3", 0}};  // both lanes, so that two GPUs have four links
  auto orders = rings_of_group(spec, 8, all(8));
  ASSERT_NE(orders, nullptr);
  EXPECT_EQ(orders->cycles(), 4U);
  EXPECT_FALSE(join(*orders, 0, 3));
  orders = rings_of_group(spec, 8, all(4));
  ASSERT_NE(orders, nullptr);
  EXPECT_FALSE(join(*orders, 0, 3));
  spec.faults = {{"router0->router3.1", 0}};
  orders = rings_of_group(spec, 8, all(8));
  ASSERT_NE(orders, nullptr);
  EXPECT_LE((arcs(*orders)[{0, 3}]), 1U);
  spec = network_of(TopologyKind::torus, {4, 4});
  spec.faults = {{"router5->router6", 0}};
  orders = rings_of_group(spec, 16, all(16));
  ASSERT_NE(orders, nullptr);
  EXPECT_FALSE(join(*orders, 5, 6));
  spec = network_of(TopologyKind::torus, {5, 5});  // more than a search takes: two of four are left
  spec.faults = {{"router5->router6", 0}};
  orders = rings_of_group(spec, 25, all(25));
  ASSERT_NE(orders, nullptr);
  EXPECT_EQ(orders->cycles(), 2U);
  EXPECT_FALSE(join(*orders, 5, 6));
}

TEST(GroupRings, ARingWithALinkOutGoesTheLongWayThere) {
  NetworkSpec spec = network_of(TopologyKind::ring);
  spec.faults = {{"router1->router2", 0}};
  const auto orders = rings_of_group(spec, 6, all(6));
  ASSERT_NE(orders, nullptr);
  EXPECT_EQ(orders->cycles(), 2U);
  EXPECT_TRUE(join(*orders, 1, 2));
}

TEST(GroupRings, WhereThereIsNoCycleGpusAreVisitedByNumber) {
  EXPECT_EQ(rings_of_group(network_of(TopologyKind::mesh, {3, 3}), 9, all(9)), nullptr);
  EXPECT_EQ(rings_of_group(network_of(TopologyKind::mesh, {6}), 6, all(6)), nullptr);
  EXPECT_EQ(rings_of_group(network_of(TopologyKind::torus, {4, 4}), 16, all(7)), nullptr);  // a part of the GPUs
  EXPECT_EQ(rings_of_group(network_of(TopologyKind::switched), 8, all(8)), nullptr);
}

NetworkSpec cluster_of(std::uint32_t gpus_per_node, std::uint32_t nics) {
  NetworkSpec network = network_of(TopologyKind::switched);
  network.cluster.emplace();
  network.cluster->gpus_per_node = gpus_per_node;
  network.cluster->nics_per_node = nics;
  return network;
}

// By node and NIC, how many rings leave by it.
void expect_each_node_once(const NetworkSpec& spec, const RingOrders& orders, const std::vector<GpuId>& group,
                           std::uint32_t nodes) {
  const std::uint32_t per_node = spec.cluster->gpus_per_node;
  const std::uint32_t per_nic = per_node / spec.cluster->nics_per_node;
  std::map<std::uint32_t, std::uint32_t> out, in;
  for (std::uint32_t c = 0; c < orders.cycles(); ++c) {
    std::uint32_t crossings = 0;
    for (std::uint32_t r = 0; r < orders.ranks(); ++r) {
      const std::uint32_t from = group[r].value;
      const std::uint32_t to = group[orders.after(c, r, 1)].value;
      if (from / per_node == to / per_node) continue;
      ++crossings;
      ++out[from / per_nic];
      ++in[to / per_nic];
      if (nodes % 2 == 0) {
        EXPECT_EQ(from % per_node / per_nic, to % per_node / per_nic) << "another rail";
      }
    }
    EXPECT_EQ(crossings, nodes);
  }
  for (const auto& [nic, rings] : out) EXPECT_EQ(rings, 1U) << nic;
  for (const auto& [nic, rings] : in) EXPECT_EQ(rings, 1U) << nic;
  EXPECT_EQ(out.size(), nodes * spec.cluster->nics_per_node);
}

TEST(GroupRings, OfAClusterLeaveEachNodeOnceByANicOfTheirOwnOnOneRail) {
  for (const std::uint32_t nics : {1U, 4U, 8U}) {
    for (const std::uint32_t nodes : {2U, 3U, 4U}) {
      const NetworkSpec spec = cluster_of(8, nics);
      const auto orders = rings_of_group(spec, 8 * nodes, all(8 * nodes));
      ASSERT_NE(orders, nullptr);
      EXPECT_EQ(orders->cycles(), nics);
      expect_each_node_once(spec, *orders, all(8 * nodes), nodes);
    }
  }
}

TEST(GroupRings, OfAClusterOfDirectNodesStepAlongLinksInThem) {
  NetworkSpec spec = cluster_of(8, 4);
  spec.topology = TopologyKind::hybrid_cube_mesh;
  const auto orders = rings_of_group(spec, 16, all(16));
  ASSERT_NE(orders, nullptr);
  const auto node = make_network(network_of(TopologyKind::hybrid_cube_mesh), 8);
  for (const auto& [arc, uses] : arcs(*orders)) {
    if (arc.first / 8 != arc.second / 8) continue;
    EXPECT_LE(uses, links(*node, arc.first % 8, arc.second % 8));
  }
}

TEST(GroupRings, OnlyTheNodeWithALinkOutOfAClusterAvoidsIt) {
  NetworkSpec spec = cluster_of(8, 4);
  spec.topology = TopologyKind::hybrid_cube_mesh;
  spec.cluster->tree = {.levels = 2, .radix = 8};
  spec.faults = {{"router8->router11", 0}};
  const auto orders = rings_of_group(spec, 16, all(16));
  ASSERT_NE(orders, nullptr);
  EXPECT_TRUE(join(*orders, 0, 3));
  EXPECT_FALSE(join(*orders, 8, 11));
}

TEST(GroupRings, RanksOfANodeAreKnownWhereTheyAreAsManyInEach) {
  EXPECT_EQ(nodes_of_group(all(8), 8).in_each(), 8U);
  EXPECT_EQ(nodes_of_group(all(8), 4).in_each(), 4U);
  EXPECT_EQ(nodes_of_group({GpuId{1}, GpuId{3}, GpuId{4}, GpuId{7}}, 4).in_each(), 2U);
  EXPECT_EQ(nodes_of_group(all(9), 4).in_each(), 0U);
  EXPECT_EQ(nodes_of_group(all(9), 4).first_ranks, (std::vector<std::uint32_t>{0, 4, 8}));
  EXPECT_EQ(nodes_of_group(all(9), 4).fewest, 1U);
}

TEST(GroupRings, OfSomeGpusOfEachNodeGoThroughEachNodeOnce) {
  const NetworkSpec spec = cluster_of(4, 4);
  const std::vector<GpuId> group{GpuId{1}, GpuId{2}, GpuId{5}, GpuId{6}, GpuId{9}};  // 2, 2 and 1
  const auto orders = rings_of_group(spec, 12, group);
  ASSERT_NE(orders, nullptr);
  for (std::uint32_t c = 0; c < orders->cycles(); ++c) {
    std::uint32_t crossings = 0;
    for (std::uint32_t r = 0; r < 5; ++r) crossings += group[r].value / 4 != group[orders->after(c, r, 1)].value / 4;
    EXPECT_EQ(crossings, 3U);
  }
}

// A ring in any of these orders still computes what it shall, for odd sizes, too.
TEST(GroupRings, CollectivesGoThroughOnAllOfThem) {
  std::vector<std::shared_ptr<const RingOrders>> networks{
      rings_of_group(network_of(TopologyKind::hybrid_cube_mesh), 8, all(8)),
      rings_of_group(network_of(TopologyKind::torus, {3, 3}), 9, all(9)),
      rings_of_group(network_of(TopologyKind::mesh, {2, 3}), 6, all(6)),
      rings_of_group(network_of(TopologyKind::ring), 7, all(7))};
  for (std::uint32_t ranks = 5; ranks <= 17; ++ranks) {
    networks.push_back(rings_of_group(cluster_of(4, 2), ranks, all(ranks)));
  }
  for (const auto& orders : networks) {
    ASSERT_NE(orders, nullptr);
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce}) {
      for (const std::int64_t elements : {1, 7, 331}) {
        const ScheduleRequest request{.kind = kind,
                                      .bytes = elements * 4,
                                      .ranks = orders->ranks(),
                                      .root = orders->ranks() / 2,
                                      .channels = orders->cycles(),
                                      .piece_bytes = 128,
                                      .ring_orders = orders};
        EXPECT_NO_THROW((void)check_schedule(*make_schedule(CollectiveAlgorithm::ring, request), request, 3))
            << to_string(kind) << " of " << orders->ranks() << " ranks, " << elements << " elements";
      }
    }
  }
}

}  // namespace
}  // namespace weft
