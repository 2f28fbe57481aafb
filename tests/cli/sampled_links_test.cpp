// One GPU for all where links join GPUs, without switches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/sampled/symmetry.h"
#include "network/network.h"
#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;

std::string all_reduce(const std::string& network, int gpus, int bytes, const std::string& all_reduce) {
  return fmt::format(R"({{"system": {{"base": "dgx-a100", "gpu": {{"compute_units": 24}}}}, "gpus": {},
    "network": {}, "workload": {{"collective": "all_reduce", "bytes": {}}}, "all_reduce": {}}})",
                     gpus, network, bytes, all_reduce);
}

constexpr const char* kFull = R"({"topology": "fully_connected", "switches": 0, "links_per_gpu": 14})";
constexpr const char* kCube = R"({"topology": "hybrid_cube_mesh", "lanes": 2, "injection_lanes": 16})";
constexpr const char* kTorus = R"({"topology": "torus", "dimensions": [4, 2], "lanes": 2, "injection_lanes": 16})";
constexpr const char* kRings = R"({"algorithm": "ring", "protocol": "Simple", "channels": 12})";

double collective_end(const Json& result) { return result.at("collectives").at(0).at("end_s").get<double>(); }

std::int64_t bytes_of_links(const Json& result, const std::string& from, const std::string& to) {
  std::int64_t bytes = 0;
  for (const Json& link : result.at("links")) {
    const auto name = link.at("name").get<std::string>();
    if (name.starts_with(from) && name.find("->" + to) != std::string::npos) bytes += link.at("bytes").get<int>();
  }
  return bytes;
}

void expect_alike(const std::string& config, double tolerance) {
  const auto [cycle, sampled] = run_both(config);
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 8"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, tolerance);
  ASSERT_EQ(sampled.at("links").size(), cycle.at("links").size());
  for (const char* from : {"gpu0", "gpu5", "router0", "router5"}) {
    for (const char* to : {"gpu", "router"}) {
      const auto all = static_cast<double>(bytes_of_links(cycle, from, to));
      EXPECT_NEAR(static_cast<double>(bytes_of_links(sampled, from, to)), all, 0.03 * all) << from << " to " << to;
    }
  }
}

TEST(SampledLinks, OneGpuStandsForAllOfRings) {
  expect_alike(all_reduce(kFull, 8, 8 << 20, R"({"algorithm": "ring", "protocol": "Simple", "channels": 7})"), 0.02);
}

TEST(SampledLinks, OneGpuStandsForAllPairs) {
  expect_alike(all_reduce(kFull, 8, 1 << 20, R"({"algorithm": "direct"})"), 0.02);
}

TEST(SampledLinks, OneGpuStandsForAllBehindRoutersOfTheirOwn) {
  expect_alike(all_reduce(kCube, 8, 6 << 20, kRings), 0.04);
}

// Its rings take some of its links, others on each GPU.
TEST(SampledLinks, OneGpuStandsForAllOfATorus) { expect_alike(all_reduce(kTorus, 8, 6 << 20, kRings), 0.04); }

std::string why_not(const std::string& config) {
  const RunConfig read = config_of(config);
  return FoldedMachine(read, programs_of(read)).why_not();
}

// Who passes through others, whose links are wider than others' and unlike theirs, or who is not there.
TEST(SampledLinks, WhatIsNotAlikeIsSimulatedInFull) {
  EXPECT_EQ(why_not(all_reduce(kCube, 8, 1 << 20, kRings)), "");
  EXPECT_THAT(why_not(all_reduce(kCube, 8, 1 << 20, R"({"algorithm": "direct"})")), HasSubstr("different things"));
  EXPECT_THAT(why_not(all_reduce(kCube, 8, 1 << 20, R"({"algorithm": "ring", "protocol": "Simple", "channels": 5})")),
              HasSubstr("links go unused"));
  EXPECT_THAT(why_not(all_reduce(R"({"topology": "ring", "injection_lanes": 7})", 8, 1 << 20, kRings)),
              HasSubstr("share the lanes"));
  EXPECT_THAT(why_not(all_reduce(R"({"topology": "ring", "injection_lanes": 8})", 8, 1 << 20,
                                 R"({"algorithm": "direct", "protocol": "Simple"})")),
              HasSubstr("pass through routers"));
  EXPECT_THAT(why_not(all_reduce(kFull, 8, 1 << 20, R"({"algorithm": "ring", "protocol": "Simple", "channels": 1})")),
              HasSubstr("one way only"));
  EXPECT_THAT(why_not(all_reduce(kTorus, 8, 300000, R"({"algorithm": "ring", "protocol": "LL128", "channels": 24})")),
              HasSubstr("unequal shares"));
  EXPECT_THAT(
      why_not(all_reduce(R"({"topology": "mesh", "dimensions": [8], "injection_lanes": 8})", 8, 1 << 20, kRings)),
      HasSubstr("no ring"));
  // GPU 0 has other links to the rest of its sample than to its likes, a switch has not.
  EXPECT_THAT(why_not(R"({"system": {"base": "mi300x", "gpu": {"compute_units": 24}}, "gpus": 8,
    "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 4, "batch": 2},
    "scheme": {"name": "megatron", "sample_gpus": 4}})"),
              HasSubstr("some GPUs only"));
  EXPECT_THAT(why_not(all_reduce(kCube, 4, 1 << 20, kRings)), HasSubstr("links go unused"));  // 12 channels, 8 orders
  EXPECT_THAT(why_not(all_reduce(kFull, 8, 1 << 20, R"({"algorithm": "double_binary_tree"})")),
              HasSubstr("different things"));
}

// A port whose link comes back has no other end.
TEST(SampledLinks, LinksOfTheOneThatStandsForAllComeBackToIt) {
  const RunConfig config = config_of(all_reduce(kFull, 8, 4096, "{}"));
  const auto network = make_network(config.system.network, 1, {}, 8);
  const Topology& topology = network->topology;
  ASSERT_EQ(topology.nodes().front().ports, 7U);
  EXPECT_TRUE(topology.loops(0));
  for (std::uint32_t port = 0; port < 7; ++port) {
    EXPECT_EQ(topology.in(0, port), topology.out(0, port));
    EXPECT_EQ(topology.cables()[topology.out(0, port).cable].lanes, 2);
  }
  EXPECT_FALSE(make_network(config.system.network, 8)->topology.loops(0));
}

}  // namespace
}  // namespace weft
