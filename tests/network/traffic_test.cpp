// Meshes and tori under synthetic traffic, against what follows from their geometry. An engine runs once a process.
#include "network/traffic.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace weft {
namespace {

constexpr std::uint32_t kSide = 8;
constexpr std::uint32_t kNodes = kSide * kSide;
constexpr Time kCycle{1LL << 22};  // whole ticks of a router: nothing is rounded

// One-flit packets; a flit, a link and a router take a cycle each.
NetworkSpec grid(TopologyKind kind, PathChoice paths) {
  NetworkSpec spec;
  spec.topology = kind;
  spec.dimensions = {kSide, kSide};
  spec.link.flit_bytes = 128;
  spec.link.bandwidth = Bandwidth(30'517'578'125);  // 128 B in 2^22 fs
  spec.link.latency = kCycle;
  spec.link.credits = 16;
  spec.switch_ = {.latency = kCycle, .arbitration = Arbitration::age, .speedup = 2};
  spec.routing.choice = paths;
  return spec;
}

TrafficResult measure(TopologyKind kind, TrafficPattern pattern, double load, std::int64_t cycles,
                      PathChoice paths = PathChoice::deterministic, std::uint32_t threads = 1) {
  TrafficSpec traffic;
  traffic.pattern = pattern;
  traffic.load = load;
  traffic.cycle = kCycle;
  traffic.warm_up = kCycle * (cycles / 4);
  traffic.end = kCycle * cycles;
  Fabric fabric(grid(kind, paths), kNodes);
  return run_traffic(traffic, fabric, kNodes, threads);
}

// A packet over h channels between routers takes h + 2 channels of two cycles and h + 1 routers of one.
double zero_load_cycles(double mean_hops) { return 2 * (mean_hops + 2) + mean_hops + 1; }

// Mean distance to another node: (k^2 - 1) / 3k in each dimension of a mesh, k / 4 of a torus with even k, with the
// node itself counted; Dally and Towles, 2004, section 5.2.
constexpr double kOthers = static_cast<double>(kNodes) / (kNodes - 1);
constexpr double kMeshHops = 2.0 * (kSide * kSide - 1) / (3.0 * kSide) * kOthers;
constexpr double kTorusHops = 2.0 * kSide / 4.0 * kOthers;

TEST(TrafficFormula, AMeshThatIsAlmostEmptyHasItsZeroLoadLatency) {
  const TrafficResult result = measure(TopologyKind::mesh, TrafficPattern::uniform, 0.005, 20'000);
  EXPECT_NEAR(result.latency_cycles, zero_load_cycles(kMeshHops), 0.01 * zero_load_cycles(kMeshHops));
}

TEST(TrafficFormula, ATorusThatIsAlmostEmptyHasItsZeroLoadLatency) {
  const TrafficResult result = measure(TopologyKind::torus, TrafficPattern::uniform, 0.005, 20'000);
  EXPECT_NEAR(result.latency_cycles, zero_load_cycles(kTorusHops), 0.01 * zero_load_cycles(kTorusHops));
}

// Half of uniform traffic crosses the bisection: 4/k flits a node and cycle in a mesh, 8/k in a torus at most.
TEST(TrafficFormula, AMeshSaturatesBelowTheCapacityOfItsBisection) {
  const TrafficResult result = measure(TopologyKind::mesh, TrafficPattern::uniform, 0.6, 2'000);
  EXPECT_GT(result.accepted, 0.8 * 4 / kSide);
  EXPECT_LT(result.accepted, 4.0 / kSide);
}

TEST(TrafficFormula, ATorusSaturatesAboveTheCapacityOfAMesh) {
  const TrafficResult result = measure(TopologyKind::torus, TrafficPattern::uniform, 0.9, 2'000);
  EXPECT_GT(result.accepted, 0.65 * 8 / kSide);
  EXPECT_LT(result.accepted, 8.0 / kSide);
}

// Dimension order sends a row's k - 1 packets over one channel: 1/(k - 1) of a flit a node and cycle.
TEST(TrafficFormula, TransposeOnAMeshIsServedUpToItsBusiestChannelAndNotBeyond) {
  const double bound = 1.0 / (kSide - 1);
  const double active = static_cast<double>(kNodes - kSide) / kNodes;  // the diagonal is silent
  const TrafficResult below = measure(TopologyKind::mesh, TrafficPattern::transpose, 0.9 * bound, 8'000);
  EXPECT_NEAR(below.accepted, 0.9 * bound * active, 0.03 * bound);
  EXPECT_LT(below.latency_cycles, 40);
}

TEST(TrafficFormula, TransposeOnAMeshOfAdaptivePathsPassesTheBoundOfDimensionOrder) {
  const double load = 2.0 / (kSide - 1);
  const double active = static_cast<double>(kNodes - kSide) / kNodes;
  const TrafficResult result =
      measure(TopologyKind::mesh, TrafficPattern::transpose, load, 4'000, PathChoice::adaptive);
  EXPECT_NEAR(result.accepted, load * active, 0.03 * load);
  EXPECT_LT(result.latency_cycles, 60);
}

TEST(TrafficFormula, AdaptivePathsHaveTheZeroLoadLatencyOfShortestOnes) {
  const TrafficResult result =
      measure(TopologyKind::torus, TrafficPattern::uniform, 0.005, 20'000, PathChoice::adaptive);
  EXPECT_NEAR(result.latency_cycles, zero_load_cycles(kTorusHops), 0.01 * zero_load_cycles(kTorusHops));
}

TEST(Traffic, TransposeBeyondTheBusiestChannelQueuesWithoutEnd) {
  const TrafficResult above = measure(TopologyKind::mesh, TrafficPattern::transpose, 1.3 / (kSide - 1), 8'000);
  EXPECT_GT(above.latency_cycles, 150);
}

// Beyond saturation as well, and by GPUs with several lanes to their routers: these have no more turns than one, else
// they fill the network with packets that wait (a mesh 0.33, a hybrid cube mesh 1.14).
double accepted_of_four_lanes(NetworkSpec spec, std::uint32_t nodes) {
  constexpr std::int64_t kLanes = 4;
  spec.injection_lanes = kLanes;
  spec.switch_ = {.latency = kCycle};
  TrafficSpec traffic;
  traffic.load = 1;
  traffic.cycle = Time(kCycle.count() / kLanes);
  traffic.warm_up = kCycle * 400;
  traffic.end = kCycle * 1600;
  Fabric fabric(spec, nodes);
  return kLanes * run_traffic(traffic, fabric, nodes).accepted;
}

TEST(Traffic, AMeshThatIsOfferedMuchMoreThanItCarriesKeepsItsThroughput) {
  EXPECT_GT(accepted_of_four_lanes(grid(TopologyKind::mesh, PathChoice::deterministic), kNodes), 0.36);
}

TEST(Traffic, ATorusThatIsOfferedMuchMoreThanItCarriesKeepsItsThroughput) {
  EXPECT_GT(accepted_of_four_lanes(grid(TopologyKind::torus, PathChoice::deterministic), kNodes), 0.56);
}

TEST(Traffic, AHybridCubeMeshThatIsOfferedMuchMoreThanItCarriesKeepsItsThroughput) {
  NetworkSpec spec = grid(TopologyKind::hybrid_cube_mesh, PathChoice::deterministic);
  spec.dimensions.clear();
  EXPECT_GT(accepted_of_four_lanes(spec, 8), 1.55);
}

std::array<double, 4> measure_in_child(std::uint32_t threads) {
  std::array<double, 4> seen{};
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return seen;
  const pid_t child = fork();
  if (child == 0) {
    const TrafficResult r =
        measure(TopologyKind::torus, TrafficPattern::uniform, 0.5, 500, PathChoice::adaptive, threads);
    seen = {r.latency_cycles, r.accepted, static_cast<double>(r.hops), static_cast<double>(r.packets)};
    _exit(write(ends[1], seen.data(), sizeof seen) == static_cast<ssize_t>(sizeof seen) ? 0 : 1);
  }
  close(ends[1]);
  EXPECT_EQ(read(ends[0], seen.data(), sizeof seen), static_cast<ssize_t>(sizeof seen));
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return seen;
}

TEST(Traffic, IsTheSameWithAnyNumberOfThreads) {
  const auto first = measure_in_child(1);
  EXPECT_GT(first[2], 1000);
  EXPECT_EQ(measure_in_child(2), first);
}

}  // namespace
}  // namespace weft
