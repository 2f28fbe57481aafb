// The message form from outside: routers between nodes that sum, on one switch and on two levels, with losses, under
// any number of threads, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config_file.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;

// Nodes of one GPU; 4 a leaf switch.
constexpr const char* kNodes = R"({
  "system": {"base": "hgx-h100-cluster", "max_gpus": 16, "switch_reduce": null,
    "network": {"cluster": {"gpus_per_node": 1, "nics_per_node": 1, "tree": {"rails": false, "radix": 8}}}},
  "network_reduce": {"slots": 512, "adders": {"bits": 512, "clock_MHz": 1000}, "latency_ns": 100, "window": 256},
  "nodes": 4, "workload": {"collective": "all_reduce", "bytes": 65536},
  "all_reduce": {"algorithm": "in_network", "channels": 4}})";

Json result_of(const std::string& arguments, const TemporaryFolder& folder) {
  const Ran ran = weft("run e.json --json " + arguments, folder);
  EXPECT_EQ(ran.code, 0) << arguments << ": " << ran.errors;
  return ran.code == 0 ? parse_json(ran.output, "stdout") : Json::object();
}

// The routers between nodes; switches in nodes do not sum.
std::vector<Json> routers_of(const Json& result) {
  std::vector<Json> routers;
  for (const Json& one : result.at("switches")) {
    if (one.at("name").get<std::string>().starts_with("router")) routers.push_back(one);
  }
  return routers;
}

TEST(InNetworkEndToEnd, OneSwitchAndTwoLevelsSumEveryChunkOnce) {
  const TemporaryFolder folder;
  folder.write("e.json", kNodes);
  for (const std::size_t nodes : {4U, 8U}) {
    const Json result = result_of("--set nodes=" + std::to_string(nodes), folder);
    EXPECT_EQ(result.at("collectives").at(0).at("algorithm"), "in_network");
    EXPECT_EQ(routers_of(result).size(), nodes == 4 ? 1 : 3);
    for (const Json& router : routers_of(result)) EXPECT_EQ(router.at("reduced_bytes"), 65536);
    for (const Json& gpu : result.at("gpus")) {
      EXPECT_EQ(gpu.at("chunks_summed"), 512);
      EXPECT_EQ(gpu.at("chunks_sent_again"), 0);
    }
  }
}

TEST(InNetworkEndToEnd, EachLinkCarriesTheMessageOnce) {
  const TemporaryFolder folder;
  folder.write("e.json", kNodes);
  const Json result = result_of("", folder);
  for (const Json& link : result.at("links")) {
    const std::string name = link.at("name");
    if (name.find("nic") == std::string::npos) continue;
    EXPECT_EQ(link.at("bytes"), 65536) << name;
  }
}

TEST(InNetworkEndToEnd, LossesAreRepairedAndDoNotDependOnThreads) {
  const TemporaryFolder folder;
  folder.write("e.json", kNodes);
  const std::string lossy = "--set nodes=8 --set network_reduce.loss=0.005 --set network_reduce.timeout_ns=20000 ";
  const Json one = without_engine(result_of(lossy + "--threads 1", folder));
  EXPECT_EQ(one, without_engine(result_of(lossy + "--threads 2", folder)));
  std::int64_t again = 0;
  for (const Json& gpu : one.at("gpus")) {
    EXPECT_EQ(gpu.at("chunks_summed"), 512);
    again += gpu.at("chunks_sent_again").get<std::int64_t>();
  }
  EXPECT_GT(again, 0);
  EXPECT_NE(result_of(lossy + "--set seed=2", folder).at("collectives"), one.at("collectives"));
}

TEST(InNetworkEndToEnd, CollectivesOneAfterAnotherUseTheSameSlots) {
  const TemporaryFolder folder;
  folder.write("e.json", kNodes);
  const Json result = result_of("--set iterations=3", folder);
  EXPECT_EQ(result.at("collectives").size(), 3U);
  ASSERT_EQ(routers_of(result).size(), 1U);
  EXPECT_LE(routers_of(result)[0].at("slots_high_water"), 256);
  EXPECT_EQ(routers_of(result)[0].at("reduced_bytes"), 3 * 65536);
}

TEST(InNetworkEndToEnd, WhatCannotBeIsRefused) {
  const TemporaryFolder folder;
  folder.write("e.json", kNodes);
  const auto refused = [&](const std::string& arguments) {
    const Ran ran = weft("run e.json --json " + arguments, folder);
    EXPECT_EQ(ran.code, 65) << arguments;
    return ran.errors;
  };
  EXPECT_THAT(refused("--set network_reduce.loss=0.01"), HasSubstr("timeout_ns"));
  EXPECT_THAT(refused("--set network_reduce.slots=3"), HasSubstr("/network_reduce/slots"));
  EXPECT_THAT(refused("--set network_reduce.adders.lanes.fp32=0"), HasSubstr("lanes for fp32"));
  EXPECT_THAT(refused("--set functional.values=normal"), HasSubstr("in_network"));
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 4, "all_reduce": {"algorithm": "in_network"},
    "workload": {"collective": "all_reduce", "bytes": 65536}})");
  EXPECT_THAT(refused(""), HasSubstr("network_reduce"));
}

}  // namespace
}  // namespace weft
