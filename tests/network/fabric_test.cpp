// Routers over several hops: exact latencies, arbitration, path choice, credits, deadlock.
#include "network/fabric.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/error.h"
#include "tests/network/fabric_bench.h"

namespace weft {
namespace {

constexpr std::uint32_t kWriteFlits = 5;  // a header and 128 B in flits of 32 B

NetworkSpec mesh(std::vector<std::uint32_t> dimensions, std::uint32_t credits = 8) {
  NetworkSpec spec = fabric_of(TopologyKind::mesh, credits);
  spec.dimensions = std::move(dimensions);
  return spec;
}

TEST(FabricFormula, APacketAloneTakesTheTimeOfItsHops) {
  for (const std::uint16_t to : std::initializer_list<std::uint16_t>{1, 3, 4, 5, 15}) {
    EXPECT_EQ(time_alone(mesh({4, 4}), 16, 0, to), unloaded(to % 4U + to / 4U + 1, kWriteFlits)) << to;
  }
  NetworkSpec tree = fabric_of(TopologyKind::fat_tree);
  tree.tree = {.levels = 3, .radix = 4};
  EXPECT_EQ(time_alone(tree, 16, 0, 1), unloaded(1, kWriteFlits));
  EXPECT_EQ(time_alone(tree, 16, 0, 2), unloaded(3, kWriteFlits));
  EXPECT_EQ(time_alone(tree, 16, 0, 15), unloaded(5, kWriteFlits));
  NetworkSpec dragonfly = fabric_of(TopologyKind::dragonfly);
  dragonfly.dragonfly = {.gpus_per_router = 1, .routers_per_group = 2, .global_links_per_router = 1};
  EXPECT_EQ(time_alone(dragonfly, 6, 0, 1), unloaded(2, kWriteFlits));
  EXPECT_EQ(time_alone(fabric_of(TopologyKind::ring), 8, 0, 4), unloaded(5, kWriteFlits));
}

TEST(FabricFormula, AClusterHopsThroughNicsAndSwitches) {
  NetworkSpec spec = fabric_of(TopologyKind::fully_connected);
  spec.links_per_gpu = 1;
  ClusterSpec cluster;
  cluster.gpus_per_node = 2;
  cluster.nics_per_node = 2;
  cluster.nic_link = fabric_link();
  cluster.link = fabric_link();
  cluster.nic_link.latency = kHop * 3;
  cluster.nic_latency = kRouter * 5;
  cluster.switch_.latency = kRouter;
  cluster.tree = {.levels = 2, .radix = 4, .oversubscription = 1, .rails = true};
  spec.cluster = cluster;
  const Time serial = kFlit * kWriteFlits;
  EXPECT_EQ(time_alone(spec, 4, 0, 2), kHop * 3 * 2 + kHop * 2 + kRouter * 5 * 2 + kRouter + serial * 4);
  EXPECT_EQ(time_alone(spec, 4, 0, 3), kHop * 3 * 2 + kHop * 4 + kRouter * 5 * 2 + kRouter * 3 + serial * 6);
}

TEST(Fabric, PacketsOfOneLaneFollowEachOtherWithoutAGap) {
  FabricBench bench(mesh({4, 1}, 64), 4);
  for (std::uint32_t i = 0; i < 20; ++i) bench.send(0, 3, i, Time(0));
  bench.run(microseconds(3));
  ASSERT_EQ(bench.ends[3]->arrived.size(), 20U);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.ends[3]->arrived[i].line, i);
    EXPECT_EQ(bench.ends[3]->arrived[i].when, unloaded(4, kWriteFlits) + kFlit * kWriteFlits * i);
  }
}

TEST(FabricFormula, CreditsBoundTheRateOfAHop) {
  constexpr std::uint32_t kPackets = 200;
  constexpr std::uint32_t kCredits = 2;
  FabricBench bench(mesh({2, 1}, kCredits), 2);
  for (std::uint32_t i = 0; i < kPackets; ++i) bench.send(0, 1, i, Time(0));
  bench.run(microseconds(30));
  ASSERT_EQ(bench.ends[1]->arrived.size(), kPackets);
  // A place is taken from the start of one packet to the start of the next hop, and its credit takes a link back.
  const Time round = kFlit * kWriteFlits + kHop + kRouter + kHop;
  const double expected = to_seconds(round) * kPackets / kCredits;
  EXPECT_NEAR(to_seconds(bench.ends[1]->arrived.back().when), expected, 0.02 * expected);
}

// Two inputs that always want one output share it, whatever the arbiter; the oldest goes first by age.
TEST(Fabric, AnOutputIsSharedByTheInputsThatWantIt) {
  for (const Arbitration arbitration : {Arbitration::round_robin, Arbitration::age}) {
    NetworkSpec spec = mesh({3, 1}, 16);
    spec.switch_.arbitration = arbitration;
    FabricBench bench(spec, 3);
    for (std::uint32_t i = 0; i < 100; ++i) {
      bench.send(0, 1, i, Time(0));
      bench.send(2, 1, i, Time(0));
    }
    bench.run(microseconds(10));
    ASSERT_EQ(bench.ends[1]->arrived.size(), 200U);
    std::map<std::uint16_t, int> first_half;
    for (std::size_t i = 0; i < 100; ++i) ++first_half[bench.ends[1]->arrived[i].source];
    EXPECT_NEAR(first_half[0], 50, 2);
    // The lane to GPU 1 never idles.
    const Time first = unloaded(2, kWriteFlits);
    EXPECT_EQ(bench.ends[1]->arrived.back().when, first + kFlit * kWriteFlits * 199);
  }
}

TEST(Fabric, AnInputIsReadAtTheRateOfALaneTimesTheSpeedup) {
  // Packets of GPU 0 to two outputs of its router, over one input: with one read at a time half the rate of two.
  const auto last = [](std::uint32_t speedup) {
    NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 64);
    spec.tree = {.levels = 2, .radix = 8};
    spec.injection = fabric_link(64);
    spec.injection->bandwidth = spec.link.bandwidth * 4;
    spec.switch_.speedup = speedup;
    FabricBench bench(spec, 4);
    for (std::uint32_t i = 0; i < 40; ++i) {
      bench.send(0, i % 2 == 0 ? 1 : 2, i, Time(0), PacketKind::read);
    }
    bench.run(microseconds(3));
    return std::max(bench.ends[1]->arrived.back().when, bench.ends[2]->arrived.back().when);
  };
  EXPECT_LE(last(4), last(1));
}

// How many packets leave a switch by each of its links up.
std::vector<std::int64_t> packets_up(PathChoice choice, bool one_pair) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 64);
  spec.tree = {.levels = 2, .radix = 8};
  spec.routing.choice = choice;
  FabricBench bench(spec, 8);
  for (std::uint32_t i = 0; i < 400; ++i) {
    bench.send(one_pair ? 0 : static_cast<std::uint16_t>(i % 4),
               one_pair ? 4 : static_cast<std::uint16_t>(4 + i / 4 % 4), i, Time(0));
  }
  bench.run(microseconds(20));
  EXPECT_EQ(bench.arrived(), 400U);
  std::vector<std::int64_t> counts;
  for (std::uint32_t port = 4; port < 8; ++port) {
    counts.push_back(bench.fabric.router_at(8).statistics(port, 0).packets);
  }
  return counts;
}

TEST(Fabric, DeterministicRoutingKeepsAPairOnOnePath) {
  EXPECT_EQ(packets_up(PathChoice::deterministic, true), (std::vector<std::int64_t>{400, 0, 0, 0}));
  EXPECT_EQ(packets_up(PathChoice::deterministic, false), (std::vector<std::int64_t>{100, 100, 100, 100}));
}

TEST(Fabric, EcmpSpreadsAddressesOverPaths) {
  for (const std::int64_t count : packets_up(PathChoice::ecmp, true)) EXPECT_NEAR(static_cast<double>(count), 100, 40);
}

TEST(Fabric, SprayTakesPathsInTurn) {
  EXPECT_EQ(packets_up(PathChoice::spray, true), (std::vector<std::int64_t>{100, 100, 100, 100}));
}

TEST(Fabric, AdaptiveRoutingAvoidsTheLinkThatOthersFill) {
  for (const std::int64_t count : packets_up(PathChoice::adaptive, false)) {
    EXPECT_NEAR(static_cast<double>(count), 100, 25);
  }
}

TEST(Fabric, EcmpKeepsTheOrderOfAnAddress) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 4);
  spec.tree = {.levels = 3, .radix = 4};
  FabricBench bench(spec, 16);
  for (std::uint32_t i = 0; i < 200; ++i) {  // `agent` tells packets of one address apart
    for (std::uint16_t from = 0; from < 15; ++from) bench.send(from, 15, i % 8, Time(0), PacketKind::write, i);
  }
  bench.run(microseconds(40));
  ASSERT_EQ(bench.arrived(), 200U * 15);
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::int64_t> last;
  for (const Packet& packet : bench.ends[15]->arrived) {
    std::int64_t& before = last.try_emplace({packet.source, packet.line}, -1).first->second;
    EXPECT_GT(packet.agent, before);
    before = packet.agent;
  }
}

// Everybody to everybody, requests and responses, with a single place a virtual channel: all of it arrives.
void expect_all_arrive(NetworkSpec spec, std::uint16_t gpus, PathChoice choice) {
  spec.routing.choice = choice;
  FabricBench bench(spec, gpus);
  std::size_t sent = 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint16_t from = 0; from < gpus; ++from) {
      for (std::uint16_t to = 0; to < gpus; ++to) {
        if (from == to) continue;
        bench.send(from, to, round * 77 + to, Time(0));
        bench.send(from, to, round * 77 + to, Time(0), PacketKind::read_reply);
        sent += 2;
      }
    }
  }
  for (Time until = microseconds(50); bench.arrived() < sent && until < microseconds(1000); until += microseconds(50)) {
    bench.run(until);
  }
  EXPECT_EQ(bench.arrived(), sent);
  EXPECT_FALSE(bench.holds_packets()) << bench.fabric.waiting_cycle();
}

TEST(Fabric, MeshAndTorusDeliverUnderLoadWithOnePlaceAChannel) {
  for (const TopologyKind kind : {TopologyKind::mesh, TopologyKind::torus}) {
    NetworkSpec spec = fabric_of(kind, 1);
    spec.dimensions = {4, 5};
    expect_all_arrive(spec, 20, PathChoice::deterministic);
  }
  expect_all_arrive(fabric_of(TopologyKind::ring, 1), 9, PathChoice::ecmp);
  expect_all_arrive(fabric_of(TopologyKind::hypercube, 1), 16, PathChoice::ecmp);
}

TEST(Fabric, TreesDeliverUnderLoadWithOnePlaceAChannel) {
  for (const PathChoice choice :
       {PathChoice::deterministic, PathChoice::ecmp, PathChoice::spray, PathChoice::adaptive}) {
    NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 1);
    spec.tree = {.levels = 3, .radix = 4};
    expect_all_arrive(spec, 16, choice);
  }
}

TEST(Fabric, DragonflyAndCubeMeshDeliverUnderLoadWithOnePlaceAChannel) {
  NetworkSpec spec = fabric_of(TopologyKind::dragonfly, 1);
  spec.dragonfly = {.gpus_per_router = 1, .routers_per_group = 4, .global_links_per_router = 1};
  expect_all_arrive(spec, 20, PathChoice::deterministic);
  expect_all_arrive(spec, 10, PathChoice::adaptive);  // three groups, two links between any two
  for (const GraphRoutes routes : {GraphRoutes::up_down, GraphRoutes::shortest_path}) {
    NetworkSpec cube = fabric_of(TopologyKind::hybrid_cube_mesh, 1);
    cube.routing.graph = routes;
    expect_all_arrive(cube, 8, PathChoice::adaptive);
  }
}

TEST(Fabric, ATorusWithALinkOutDeliversUnderLoad) {
  NetworkSpec spec = fabric_of(TopologyKind::torus, 1);
  spec.dimensions = {4, 4};
  spec.faults = {{"router5->router6", 0}, {"router0->router4", 0}};
  expect_all_arrive(spec, 16, PathChoice::ecmp);
}

// A ring without datelines: all go half way round, and every place waits for the next one.
TEST(Fabric, ADeadlockIsFoundAndNamed) {
  NetworkSpec spec = fabric_of(TopologyKind::ring, 1);
  spec.routing.virtual_channels = 1;
  FabricBench bench(spec, 5);
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (std::uint16_t from = 0; from < 5; ++from)
      bench.send(from, static_cast<std::uint16_t>((from + 2) % 5), round, Time(0));
  }
  bench.run(microseconds(50));
  EXPECT_TRUE(bench.holds_packets());
  const std::string cycle = bench.fabric.waiting_cycle();
  EXPECT_EQ(cycle.find("packets wait for each other in a cycle: router"), 0U) << cycle;
  for (const char* link : {"router0->router1.0 requests class 0", "router4->router0.0 requests class 0"}) {
    EXPECT_NE(cycle.find(link), std::string::npos) << cycle;
  }
  spec.routing.virtual_channels = 0;
  expect_all_arrive(spec, 5, PathChoice::deterministic);
}

TEST(Fabric, ADegradedLaneTakesLonger) {
  NetworkSpec spec = mesh({2, 1});
  spec.faults = {{"router0->router1", 0.5}};
  const Time slower = time_alone(spec, 2, 0, 1) - unloaded(2, kWriteFlits) - kFlit * kWriteFlits;
  EXPECT_GE(slower, Time(0));
  EXPECT_LE(slower, Time(kFlit.count() / 2));  // half a rate is no whole number of B/s: a router's tick
  EXPECT_EQ(time_alone(spec, 2, 1, 0), unloaded(2, kWriteFlits));
}

TEST(Fabric, ALaneThatIsOutIsAvoided) {
  NetworkSpec spec = mesh({2, 1}, 64);
  spec.lanes = 3;
  spec.faults = {{"router0->router1.1", 0}};
  FabricBench bench(spec, 2);
  for (std::uint32_t i = 0; i < 90; ++i) bench.send(0, 1, i, Time(0));
  bench.run(microseconds(10));
  EXPECT_EQ(bench.arrived(), 90U);
  const Router& router = bench.fabric.router_at(2);
  EXPECT_EQ(router.statistics(1, 1).packets, 0);
  EXPECT_GT(router.statistics(1, 0).packets, 20);
  EXPECT_GT(router.statistics(1, 2).packets, 20);
}

TEST(Fabric, CountsQueuesAndStalls) {
  NetworkSpec spec = mesh({3, 1}, 2);
  spec.injection = fabric_link(16);
  FabricBench bench(spec, 3);
  for (std::uint32_t i = 0; i < 50; ++i) bench.send(0, 2, i, Time(0));
  bench.run(microseconds(10));
  const LaneStatistics& lane = bench.fabric.router_at(3).statistics(1, 0);
  EXPECT_EQ(lane.packets, 50);
  EXPECT_EQ(lane.payload_bytes, 50 * 128);
  EXPECT_EQ(lane.busy, kFlit * kWriteFlits * 50);
  EXPECT_GT(lane.queue_high_water, 8U);  // what two credits do not let through waits here
  EXPECT_LE(lane.queue_high_water, 16U);
  EXPECT_GT(lane.stalled, lane.busy);
}

TEST(FabricFormula, MemoryIsLinearInGpusAndLinks) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree);
  spec.tree = {.levels = 3, .radix = 26};  // 4394 places
  const Fabric fabric(spec, 4096);
  EXPECT_EQ(fabric.topology().count(TopologyNodeKind::router), 316U + 325U + 169U);
  EXPECT_EQ(fabric.topology().cables().size(), 4096U + 316U * 13 + 325U * 13);
}

}  // namespace
}  // namespace weft
