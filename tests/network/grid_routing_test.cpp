// Meshes, tori, hypercubes: the ways that routes allow, and that no cycle of channels can close.
#include "network/grid_routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "tests/network/channel_dependencies.h"
#include "tests/network/fabric_bench.h"

namespace weft {
namespace {

void expect_no_cycles(const NetworkSpec& spec, std::uint16_t gpus, std::uint32_t longest) {
  const auto network = make_network(spec, gpus);
  const Dependencies dependencies = dependencies_of(*network, gpus);
  EXPECT_FALSE(dependencies.cyclic()) << gpus;
  EXPECT_EQ(dependencies.longest, longest) << gpus;
}

TEST(RoutingFormula, GridsCloseNoCycleOfChannelsAndTakeShortestWays) {
  for (const PathChoice choice : {PathChoice::deterministic, PathChoice::adaptive}) {
    NetworkSpec spec = fabric_of(TopologyKind::mesh);
    spec.routing.choice = choice;
    spec.dimensions = {5, 3};
    expect_no_cycles(spec, 15, 4 + 2 + 1);
    spec.dimensions = {3, 3, 3};
    expect_no_cycles(spec, 27, 6 + 1);
    spec.topology = TopologyKind::torus;
    spec.dimensions = {4, 4};
    expect_no_cycles(spec, 16, 4 + 1);
    spec.dimensions = {4, 3, 2};
    expect_no_cycles(spec, 24, 2 + 1 + 1 + 1);
    spec.dimensions = {5, 5};
    expect_no_cycles(spec, 25, 4 + 1);
    spec.topology = TopologyKind::hypercube;
    expect_no_cycles(spec, 16, 4 + 1);
  }
}

// Packets between all pairs over each link between routers.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> loads(const NetworkSpec& spec, std::uint16_t gpus) {
  const auto network = make_network(spec, gpus);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> packets;  // by cable and direction
  for (std::uint16_t a = 0; a < gpus; ++a) {
    for (std::uint16_t b = 0; b < gpus; ++b) {
      Packet packet;
      packet.source = a;
      packet.destination = b;
      LinkId link = network->topology.out(a, network->topology.nodes()[a].ports - 1);
      while (a != b) {
        const std::uint32_t node = network->topology.to(link);
        const Cable& cable = network->topology.cables()[link.cable];
        const Hops hops = network->routing(node).next(node, link.direction == 0 ? cable.port_b : cable.port_a, packet);
        link = network->topology.out(node, hops.port(0));
        packet.vc_class = hops.vc_class;
        if (network->topology.to(link) == b) break;
        ++packets[{link.cable, link.direction}];
      }
    }
  }
  return packets;
}

TEST(RoutingFormula, BothWaysAroundARingCarryTheSame) {
  NetworkSpec spec = fabric_of(TopologyKind::torus);
  for (const std::vector<std::uint32_t>& dimensions :
       std::vector<std::vector<std::uint32_t>>{{4}, {8}, {4, 4}, {8, 8}, {4, 2}, {4, 4, 4}}) {
    spec.dimensions = dimensions;
    std::uint16_t gpus = 1;
    for (const std::uint32_t k : dimensions) gpus = static_cast<std::uint16_t>(gpus * k);
    std::set<std::uint32_t> all;
    for (const auto& [link, packets] : loads(spec, gpus)) all.insert(packets);
    EXPECT_EQ(all.size(), 1U) << gpus;
  }
}

TEST(RoutingFormula, OneClassOnATorusClosesACycle) {
  Dependencies dependencies;
  NetworkSpec spec = fabric_of(TopologyKind::torus);
  spec.dimensions = {5};
  const auto network = make_network(spec, 5);
  for (std::uint16_t a = 0; a < 5; ++a) dependencies.follow(*network, a, static_cast<std::uint16_t>((a + 2) % 5));
  EXPECT_FALSE(dependencies.cyclic());
  Dependencies merged;  // as if all classes were one
  for (const auto& [held, wanted] : dependencies.wants) {
    for (const auto& channel : wanted) merged.wants[{held[0], held[1], 0}].insert({channel[0], channel[1], 0});
  }
  EXPECT_TRUE(merged.cyclic());
}

TEST(Routing, AdaptiveGridsOfferEveryDimensionThatIsLeft) {
  NetworkSpec spec = fabric_of(TopologyKind::torus);
  spec.dimensions = {4, 4};
  spec.routing.choice = PathChoice::adaptive;
  const auto network = make_network(spec, 16);
  const auto choices = [&](std::uint16_t to) {
    Packet packet;
    packet.source = 0;
    packet.destination = to;
    return network->routing(16).next(16, 0, packet).count;
  };
  EXPECT_EQ(choices(1), 1);
  EXPECT_EQ(choices(4), 1);
  EXPECT_EQ(choices(5), 2);
  EXPECT_EQ(choices(15), 2);
  spec.dimensions = {2, 2, 2, 2};
  EXPECT_THAT(
      [&] { return make_network(spec, 16); },
      testing::ThrowsMessage<InputError>(testing::HasSubstr(
          "/network/routing/paths: expected deterministic paths for so many dimensions (adaptive: at most 3)")));
}

}  // namespace
}  // namespace weft
