// The network part of a configuration: topologies with their parameters, link presets, errors with their place.
#include "cli/config/network_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/config/run_config.h"
#include "cli/config/system_json.h"
#include "cli/config/system_of.h"
#include "sim/error.h"

namespace weft {
namespace {

using testing::HasSubstr;

// A collective on DGX A100 with another network.
RunConfig config_with(const std::string& network, std::uint32_t gpus = 8) {
  const Json document{{"system", "dgx-a100"},
                      {"gpus", gpus},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", 1 << 20}}},
                      {"network", Json::parse(network)}};
  return read_run_config(document, "e.json");
}

std::string error_with(const std::string& network) {
  try {
    static_cast<void>(config_with(network));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NetworkJson, ReadsEachTopologyAndWritesWhatReadsBackToTheSame) {
  for (const char* network : {
           R"({"topology": "ring", "lanes": 6})",
           R"({"topology": "mesh", "dimensions": [4, 2], "lanes": 3, "injection_lanes": 12})",
           R"({"topology": "torus", "dimensions": [2, 2, 2], "switch": {"arbitration": "age", "speedup": 2}})",
           R"({"topology": "hypercube", "injection": {"preset": "nvlink4"}})",
           R"({"topology": "hybrid_cube_mesh", "routing": {"graph": "shortest_path"}})",
           R"({"topology": "fat_tree", "tree": {"levels": 3, "radix": 4}, "routing": {"paths": "spray"}})",
           R"({"topology": "dragonfly",
               "dragonfly": {"gpus_per_router": 2, "routers_per_group": 2, "global_links_per_router": 1}})",
           R"({"topology": "switched", "links_per_gpu": 6, "switches": 2,
               "faults": [{"link": "gpu0->switch1.2", "factor": 0.5}]})",
       }) {
    const RunConfig config = config_with(network);
    const RunConfig again = read_run_config(config.resolved, "resolved.json");
    EXPECT_EQ(config.resolved.dump(), again.resolved.dump()) << network;
  }
}

TEST(NetworkJson, LinksToRoutersAreAsWideAsThoseBetweenThem) {
  const auto lanes = [](const std::string& network) { return config_with(network).system.network.injection_lanes; };
  EXPECT_EQ(lanes(R"({"topology": "ring"})"), 1U);
  EXPECT_EQ(lanes(R"({"topology": "ring", "lanes": 6})"), 6U);
  EXPECT_EQ(lanes(R"({"topology": "ring", "lanes": 6, "injection_lanes": 2})"), 2U);
  NetworkSpec network = config_with(R"({"topology": "ring", "lanes": 3, "injection_lanes": 24})").system.network;
  EXPECT_EQ(lanes_for_each_gpu(network, 8), 3U);
  network.injection_lanes = 23;
  EXPECT_EQ(lanes_for_each_gpu(network, 8), 0U);
  network = config_with(R"({"topology": "fat_tree", "tree": {"levels": 2, "radix": 4}, "lanes": 8})").system.network;
  EXPECT_EQ(lanes_for_each_gpu(network, 8), 0U);
}

// A GPU of eight has seven links, one to each other one.
TEST(NetworkJson, SomeGpusThatAreFullyConnectedHaveTheLinksAmongThem) {
  const auto read = [](int gpus) {
    return read_run_config(
        Json{{"system", "mi300x"}, {"gpus", gpus}, {"workload", {{"collective", "all_reduce"}, {"bytes", 1 << 20}}}},
        "e.json");
  };
  EXPECT_EQ(read(8).system.network.links_per_gpu, 7U);
  EXPECT_EQ(read(4).system.network.links_per_gpu, 3U);
  const RunConfig two = read(2);
  EXPECT_EQ(two.system.network.links_per_gpu, 1U);
  EXPECT_EQ(two.resolved.at("system").at("network").at("links_per_gpu"), 7);
  EXPECT_EQ(read_run_config(two.resolved, "r.json").system.network.links_per_gpu, 1U);
}

TEST(NetworkJson, ReadsAGraph) {
  const RunConfig config = config_with(R"({"topology": "graph", "graph": {
      "nodes": [{"name": "a", "gpu": true}, {"name": "b", "gpu": true}, {"name": "c", "gpu": true},
                {"name": "d", "gpu": true}, {"name": "e", "gpu": true}, {"name": "f", "gpu": true},
                {"name": "g", "gpu": true}, {"name": "h", "gpu": true}, {"name": "hub"}],
      "links": [{"from": "a", "to": "hub", "lanes": 2}, {"from": "b", "to": "hub"}, {"from": "c", "to": "hub"},
                {"from": "d", "to": "hub"}, {"from": "e", "to": "hub"}, {"from": "f", "to": "hub"},
                {"from": "g", "to": "hub"}, {"from": "h", "to": "hub", "bandwidth_GBps": 50}]}})");
  const GraphSpec& graph = config.system.network.graph;
  ASSERT_EQ(graph.links.size(), 8U);
  EXPECT_EQ(graph.links[0].lanes, 2U);
  EXPECT_EQ(graph.links[7].bandwidth, gigabytes_per_second(50));
  EXPECT_FALSE(graph.links[7].latency.has_value());
  EXPECT_EQ(read_run_config(config.resolved, "r.json").resolved.dump(), config.resolved.dump());
}

TEST(NetworkJson, ALinkPresetReplacesTheLinkAndKeysBesideItGoOverIt) {
  const LinkSpec link = config_with(R"({"link": {"preset": "nvlink5", "credits": 7}})").system.network.link;
  EXPECT_EQ(link.bandwidth, gigabytes_per_second(50));
  EXPECT_EQ(link.credits, 7U);
  EXPECT_THAT(error_with(R"({"link": {"preset": "nvlink9"}})"),
              HasSubstr("e.json: /network/link/preset: expected one of"));
}

TEST(NetworkJson, NamesThePlaceOfWhatMakesNoNetwork) {
  EXPECT_THAT(error_with(R"({"topology": "torus", "dimensions": [2, 2]})"),
              HasSubstr("e.json: /network/dimensions: expected places for 8 GPUs (max_gpus), got 4"));
  EXPECT_THAT(error_with(R"({"topology": "torus", "dimensions": [2, "x"]})"),
              HasSubstr("/network/dimensions: expected"));
  EXPECT_THAT(error_with(R"({"topology": "mesh"})"), HasSubstr("/network/dimensions: expected"));
  EXPECT_THAT(error_with(R"({"topology": "mesh", "dimensions": [8], "tree": {"levels": 2, "radix": 4}})"),
              HasSubstr("/network/tree: "));
  EXPECT_THAT(error_with(R"({"topology": "fat_tree", "tree": {"levels": 2, "radix": 9}})"),
              HasSubstr("/network/tree/radix: expected a multiple of oversubscription + 1 = 2, got 9"));
  EXPECT_THAT(error_with(R"({"topology": "ringg"})"), HasSubstr("/network/topology: expected one of"));
  EXPECT_THAT(error_with(R"({"faults": [{"link": "gpu0->switch9", "factor": 0}]})"),
              HasSubstr("/network/faults/0/link: expected a link"));
  EXPECT_THAT(error_with(R"({"topology": "ring", "injection": {"latency_ns": 0}})"), HasSubstr("/network/injection/"));
}

TEST(SystemPresets, ClustersAreNodesOfTheirSystemWithNics) {
  for (const char* name : {"dgx-a100", "hgx-h100"}) {
    const SystemSpec node = preset_system(name);
    const SystemSpec cluster = preset_system(std::string(name) + "-cluster");
    ASSERT_TRUE(cluster.network.cluster.has_value());
    EXPECT_EQ(cluster.network.switches, node.network.switches);
    EXPECT_EQ(cluster.gpu.compute_units, node.gpu.compute_units);
    EXPECT_TRUE(cluster.network.cluster->tree.rails);
    EXPECT_EQ(cluster.switch_reduce.has_value(), node.switch_reduce.has_value());  // inside each node
  }
}

TEST(NetworkJson, NodesOfAClusterStandForTheirGpus) {
  Json document{{"system", "dgx-a100-cluster"}, {"workload", {{"collective", "all_reduce"}, {"bytes", 1 << 20}}}};
  document["nodes"] = 3;
  EXPECT_EQ(read_run_config(document, "e.json").gpus, 24U);
  const auto error = [](const Json& json) -> std::string {
    try {
      static_cast<void>(read_run_config(json, "e.json"));
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  document["nodes"] = 81;
  EXPECT_THAT(error(document), HasSubstr("e.json: /nodes: expected an integer "));
  document["gpus"] = 8;
  EXPECT_THAT(error(document), HasSubstr("/nodes: expected either"));
  document.erase("gpus");
  document["system"] = "dgx-a100";
  EXPECT_THAT(error(document), HasSubstr("/nodes: expected a system of several nodes"));
}

TEST(LinkPresets, AreLinksWithASourceBesideEveryNumber) {
  int count = 0;
  for (const std::string& name : preset_names("links")) {
    ++count;
    EXPECT_EQ(error_with(R"({"link": {"preset": ")" + name + R"("}})"), "no error") << name;
    std::ifstream file(std::filesystem::path(WEFT_SOURCE_DIR) / "configs" / "links" / (name + ".json"));
    for (std::string line; std::getline(file, line);) {
      const auto colon = line.find("\": ");
      const bool is_number = colon != std::string::npos && line.find_first_of("0123456789", colon) == colon + 3;
      if (is_number) {
        EXPECT_THAT(line, HasSubstr("// ")) << name;
      }
    }
  }
  EXPECT_GE(count, 10);
}

// A link is never held up by its own credits: they cover what is under way during a credit's round trip.
TEST(LinkPresets, HaveCreditsForTheirLinks) {
  for (const std::string& name : preset_names("links")) {
    const LinkSpec link = config_with(R"({"link": {"preset": ")" + name + R"("}})").system.network.link;
    const double round_trip_bytes = 2 * to_seconds(link.latency) * static_cast<double>(link.bandwidth.count());
    EXPECT_GT(link.credits * (link.max_payload_bytes + link.header_flits * link.flit_bytes), round_trip_bytes) << name;
  }
}

}  // namespace
}  // namespace weft
