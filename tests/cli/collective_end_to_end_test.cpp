// Collectives from outside: algorithms of users, groups at the same time, late GPUs, and what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "sim/config_file.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The only row of a table, or an empty object.
Json row_of(const std::string& arguments, const TemporaryFolder& folder) {
  const Ran ran = weft("collective e.json --min 64KiB --max 64KiB --json " + arguments, folder);
  EXPECT_EQ(ran.code, 0) << arguments << ": " << ran.errors;
  return ran.code == 0 ? parse_json(ran.output, "stdout").at("rows").at(0) : Json::object();
}

Json result_of(const std::string& arguments, const TemporaryFolder& folder) {
  const Ran ran = weft("run e.json --json " + arguments, folder);
  EXPECT_EQ(ran.code, 0) << arguments << ": " << ran.errors;
  return ran.code == 0 ? parse_json(ran.output, "stdout") : Json::object();
}

double time_of(const Json& collective) {
  return collective.at("end_s").get<double>() - collective.at("start_s").get<double>();
}

// Shipped ones by their name; the first takes no more bytes between its two nodes than it must.
TEST(AlgorithmFilesEndToEnd, ShippedOnesRun) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100"})");
  for (const auto& [file, name] :
       {std::pair("hierarchical_2x4.json", "hierarchical_2x4"), std::pair("all_pairs_8.xml", "all_pairs_8")}) {
    const Json row = row_of(std::string("--algorithm-file ") + file, folder);
    EXPECT_EQ(row.at("algorithm"), name);
    EXPECT_EQ(row.at("size"), 64 << 10);
  }
}

constexpr const char* kPair = R"({
  "name": "pair", "collective": "all_reduce", "chunks": 1,
  "ranks": [ { "blocks": [ { "steps": [ { "read": {"input": 0}, "send": [1] },
                                        { "receive": [1], "read": {"input": 0}, "write": {"output": 0} } ] } ] },
             { "blocks": [ { "steps": [ { "read": {"input": 0}, "send": [0] },
                                        { "receive": [0], "read": {"input": 0}, "write": {"output": 0} } ] } ] } ] })";

TEST(AlgorithmFilesEndToEnd, ConfigurationsNameThemRelativeToThemselves) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "sub");
  folder.write("sub/pair.json", kPair);
  folder.write("sub/e.json", R"({"system": "hgx-h100", "gpus": 2, "all_reduce": {"algorithm_file": "pair.json"},
    "workload": {"collective": "all_reduce", "bytes": 65536}})");
  const Ran ran = weft("run sub/e.json --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "stdout");
  EXPECT_EQ(result.at("collectives").at(0).at("algorithm"), "pair");
  // The resolved configuration runs again.
  folder.write("again.json", result.at("config").dump());
  const Ran again = weft("run again.json --json", folder);
  ASSERT_EQ(again.code, 0) << again.errors;
  EXPECT_EQ(parse_json(again.output, "stdout").at("collectives"), result.at("collectives"));
}

TEST(AlgorithmFilesEndToEnd, WhatDoesNotComputeTheCollectiveIsRefused) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 2})");
  folder.write("pair.json", kPair);
  std::string wrong = kPair;
  const std::string forgotten = R"("receive": [0], "read": {"input": 0}, "write")";
  wrong.replace(wrong.find(forgotten), forgotten.size(), R"("receive": [0], "write")");
  folder.write("wrong.json", wrong);
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Ran ran = weft("collective e.json --min 64KiB --max 64KiB " + arguments, folder);
    EXPECT_EQ(ran.code, 65) << arguments;
    EXPECT_THAT(ran.errors, StartsWith("weft: error: ")) << arguments;
    EXPECT_THAT(ran.errors, HasSubstr(part)) << arguments;
  };
  refused("--algorithm-file wrong.json", "wrong.json: /ranks/1/blocks/0/steps/1: element 0 of the output of rank 1");
  refused("--algorithm-file wrong.json", "no contribution of rank 1");
  refused("--algorithm-file pair.json --collective all_gather",
          "/all_reduce/algorithm_file: expected an algorithm for all_gather of 2 ranks, got all_reduce of 2 (pair)");
  refused("--algorithm-file pair.json --set gpus=4", "expected an algorithm for all_reduce of 4 ranks");
  EXPECT_EQ(weft("collective e.json --algorithm-file none.json", folder).code, 66);
}

// As `weft collective <(jq ... e.json)` gives it: what is read once is gone.
TEST(CollectiveEndToEnd, TheConfigurationMayComeFromAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { folder.write("pipe", R"({"system": "hgx-h100", "gpus": 2})"); });
  const Ran ran = weft("collective pipe --min 1KiB --max 2KiB --json", folder);
  writer.join();
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(parse_json(ran.output, "stdout").at("rows").size(), 2U);
}

TEST(CollectiveEndToEnd, AllCollectivesHaveTheColumnsOfNcclTests) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 4})");
  struct Expected {
    const char* collective;
    const char* algorithm;
    const char* redop;
    double factor;  // nccl-tests: doc/PERFORMANCE.md, src/gather.cu, src/scatter.cu
  };
  for (const Expected& e :
       {Expected{"broadcast --root 3", "ring", "none", 1}, Expected{"reduce", "ring", "sum", 1},
        Expected{"gather --root 1", "direct", "none", 0.75}, Expected{"scatter", "direct", "none", 0.75},
        Expected{"reduce_scatter", "ring", "sum", 0.75}, Expected{"shift", "direct", "none", 1}}) {
    const Json row = row_of(std::string("--collective ") + e.collective, folder);
    EXPECT_EQ(row.at("algorithm"), e.algorithm) << e.collective;
    EXPECT_EQ(row.at("redop"), e.redop) << e.collective;
    EXPECT_EQ(row.at("size"), 64 << 10) << e.collective;
    const double algbw = row.at("algbw_GBps");
    EXPECT_NEAR(row.at("busbw_GBps").get<double>(), algbw * e.factor, algbw * 1e-9) << e.collective;
  }
  const Json barrier = row_of("--collective barrier", folder);
  EXPECT_EQ(barrier.at("size"), 0);
  EXPECT_GT(barrier.at("time_us").get<double>(), 1);
  EXPECT_EQ(row_of("--collective send_receive --set gpus=2", folder).at("algorithm"), "direct");
  EXPECT_EQ(row_of("--algorithm hierarchical --set all_reduce.ranks_per_node=2", folder).at("algorithm"),
            "hierarchical");
}

// All may be through while flags that they posted last are still on their way to the links: of a tree, those that say
// that a slot is free.
TEST(CollectiveEndToEnd, BarriersEndOnNetworksWithRouters) {
  const TemporaryFolder folder;
  for (const char* system : {R"("dgx1-v100", "gpus": 2)", R"("hgx-h100-cluster", "gpus": 12)"}) {
    folder.write("e.json", std::string(R"({"system": )") + system + R"(, "workload": {"collective": "barrier"}})");
    const double time = result_of("", folder).at("iteration").at("time_s");
    EXPECT_GT(result_of("--set all_reduce.algorithm=tree", folder).at("iteration").at("time_s"), time) << system;
  }
}

// What each rank sends crosses its links once, on any network; between nodes through the NIC of one GPU.
TEST(CollectiveEndToEnd, AShiftMovesTheMessageOnceOverEachLink) {
  const TemporaryFolder folder;
  constexpr const char* kShift = R"("workload": {"collective": "shift", "bytes": 1048576}})";
  const auto sent = [&](const std::string& system) {
    folder.write("e.json", "{" + system + kShift);
    const Json result = result_of("", folder);
    double bytes = 0;
    for (const Json& link : result.at("links")) {
      if (link.at("name").get<std::string>().starts_with("gpu1->")) bytes += link.at("bytes").get<double>();
    }
    return bytes / 1048576;
  };
  EXPECT_NEAR(sent(R"("system": "dgx-a100", "gpus": 8, )"), 1, 0.002);  // and flags
  EXPECT_NEAR(sent(R"("system": "hgx-h100", "gpus": 7, )"), 1, 0.002);
  EXPECT_NEAR(sent(R"("system": {"base": "hgx-h100", "max_gpus": 5, "switch_reduce": null,
                      "network": {"topology": "ring"}}, "gpus": 5, )"),
              1, 0.002);
}

TEST(CollectiveEndToEnd, AShiftBetweenNodesGoesThroughOneNic) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "dgx-a100-cluster", "max_gpus": 16}, "gpus": 16,
    "workload": {"collective": "shift", "bytes": 4194304}})");
  const Json result = result_of("", folder);
  EXPECT_GT(time_of(result.at("collectives").at(0)), 4194304 / 25e9);  // a NIC of 200 Gbit/s
}

// Two groups of GPUs in a row, of which each ring needs the one link between the halves, or none of the other's.
TEST(GroupsEndToEnd, ThoseThatShareLinksTakeLongerAndOthersDoNot) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "hgx-h100", "max_gpus": 4, "switch_reduce": null,
      "network": {"topology": "mesh", "dimensions": [4], "lanes": 2, "injection_lanes": 18}}, "gpus": 4,
    "all_reduce": {"algorithm": "ring", "protocol": "Simple"},
    "workload": {"collective": "all_reduce", "bytes": 4194304}})");
  const auto time = [&](const std::string& groups) {
    const Json result = result_of("--set 'workload.groups=" + groups + "'", folder);
    return time_of(result.at("collectives").at(0));
  };
  const double crossing = time("[[0,2]]");
  EXPECT_GT(time("[[0,2],[1,3]]"), 1.5 * crossing);  // both over the link from 1 to 2
  const double side = time("[[0,1]]");
  EXPECT_LT(time("[[0,1],[2,3]]"), 1.01 * side);
}

// A link to a switch carries packets to anybody by all of its lanes; one to a router that is part of the GPU stands for
// the queues of its ports.
TEST(LinksEndToEnd, LanesToASwitchAreSharedAndThoseToAnOwnRouterAreNot) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& network) {
    folder.write("e.json", R"({"system": {"base": "hgx-h100", "max_gpus": 4, "switch_reduce": null, "network": )" +
                               network + R"(}, "gpus": 4, "workload": {"collective": "shift", "bytes": 1048576}})");
    return result_of("", folder);
  };
  const auto used = [](const Json& result) {
    int lanes = 0;
    for (const Json& link : result.at("links")) {
      const bool of_first = link.at("name").get<std::string>().starts_with("gpu0->router");
      if (of_first && link.at("bytes").get<std::int64_t>() > 100000) ++lanes;
    }
    return lanes;
  };
  EXPECT_EQ(used(run(R"({"topology": "fat_tree", "tree": {"levels": 2, "radix": 4}, "lanes": 8})")), 8);
  EXPECT_EQ(used(run(R"({"topology": "ring", "lanes": 2})")), 2);
  EXPECT_THAT(run(R"({"topology": "ring", "lanes": 2})").at("notes").dump(),
              HasSubstr("has 2 lanes to its router (network.injection_lanes), which has up to 4 to others: a router"));
  const Json own = run(R"({"topology": "ring", "lanes": 2, "injection_lanes": 8})");
  EXPECT_EQ(used(own), 2);
  EXPECT_EQ(own.at("notes").dump().find("injection_lanes"), std::string::npos);
  const Json wide = run(R"({"topology": "ring", "lanes": 2, "injection": {"preset": "nvlink5"}})");  // twice the rate
  EXPECT_EQ(wide.at("notes").dump().find("injection_lanes"), std::string::npos);
}

// Lines that come by different lanes of one link go on by different lanes of the next: three carry nearly what they
// can.
TEST(LinksEndToEnd, LinesOfAMessageTakeTurnsOnTheLanesBetweenRouters) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "hgx-h100", "max_gpus": 4, "switch_reduce": null,
      "network": {"topology": "ring", "lanes": 3, "injection_lanes": 12}}, "gpus": 4,
    "workload": {"collective": "shift", "bytes": 16777216}})");
  const double GBps = 16777216e-9 / time_of(result_of("", folder).at("collectives").at(0));
  EXPECT_GT(GBps, 0.75 * 3 * 25 * 0.94 * 128 / 144);  // lanes by chance: 0.6
}

// 16 lanes to the router are no 16 links: half a megabyte by two is long enough for LL128.
TEST(LinksEndToEnd, TheTunerReckonsWithTheLinksBehindTheRouter) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "hgx-h100", "max_gpus": 4, "switch_reduce": null,
      "network": {"topology": "ring", "injection_lanes": 16}}, "gpus": 4, "all_reduce": {"algorithm": "ring"},
    "workload": {"collective": "all_reduce", "bytes": 524288}})");
  EXPECT_EQ(result_of("", folder).at("collectives").at(0).at("protocol"), "LL128");
}

TEST(GroupsEndToEnd, AGroupWaitsForItsLateGpuAndOthersDoNot) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 65536,
    "groups": [[0, 1], [2, 3]], "start_delay_us": [0, 100]}})");
  const Json collectives = result_of("", folder).at("collectives");
  ASSERT_EQ(collectives.size(), 2U);
  EXPECT_GT(time_of(collectives.at(0)), 100e-6);
  EXPECT_LT(time_of(collectives.at(1)), 50e-6);
}

TEST(BadInputEndToEnd, CollectivesAndNetworksThatCannotBeAreRefused) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "hgx-h100", "switch_reduce": null}, "gpus": 4,
    "workload": {"collective": "all_reduce", "bytes": 65536}})");
  const auto refused = [&](const std::string& sets, const std::string& part) {
    const Ran ran = weft("run e.json -o out " + sets, folder);
    EXPECT_EQ(ran.code, 65) << sets;
    EXPECT_THAT(ran.errors, StartsWith("weft: error: ")) << sets;
    EXPECT_THAT(ran.errors, HasSubstr(part)) << sets;
    EXPECT_EQ(std::count(ran.errors.begin(), ran.errors.end(), '\n'), 1) << ran.errors;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
  };
  refused("--set 'workload.groups=[[0,9]]'", "/workload/groups/0: expected GPUs below 4, got 9");
  refused("--set 'workload.groups=[[0,1],[1,2]]'", "/workload/groups/1: expected each GPU once");
  refused("--set 'workload.groups=[0,1]'", "/workload/groups: expected an array of arrays");
  refused("--set workload.root=4", "/workload/root: expected a place in a group of 4, got 4");
  refused("--set 'workload.start_delay_us=[-1]'", "/workload/start_delay_us: expected an array of numbers");
  refused("--set all_reduce.algorithm=hierarchical", "/all_reduce/ranks_per_node: expected the ranks of a node");
  refused("--set workload.collective=all_gather --set all_reduce.algorithm=tree",
          "/all_reduce/algorithm: expected auto or ring or in_switch or halving_doubling or direct for all_gather, got "
          "tree");
  refused(
      "--set workload.collective=broadcast --set all_reduce.algorithm=in_switch --set switch_reduce.preset=nvswitch3",
      "/all_reduce/registered: expected true for broadcast in_switch: only all_reduce, all_gather and "
      "reduce_scatter have staging copies, got false");
  refused("--set workload.collective=send_receive", "/gpus: expected 2 GPUs for send_receive, got 4");
  refused("--set network.link.latency_ns=0", "/network/link/latency_ns: expected a number from 0.001");
  std::string faults;
  for (int s = 0; s < 4; ++s) {
    faults += fmt::format(R"({}{{"link": "gpu0->switch{}", "factor": 0}})", s == 0 ? "" : ", ", s);
  }
  refused("--set 'network.faults=[" + faults + "]'", "got no lane that works for gpu0: gpu0->switch0, ");
  const std::string graph = "--set network.topology=graph --set 'network.graph=";
  const std::string nodes =
      R"({"nodes": [{"name": "a", "gpu": true}, {"name": "b", "gpu": true}, )"
      R"({"name": "c", "gpu": true}, {"name": "d", "gpu": true}, {"name": "r"}, {"name": "s"}], )";
  refused(graph + nodes +
              R"("links": [{"from": "a", "to": "r"}, {"from": "b", "to": "r"}, {"from": "c", "to": "s"}, )" +
              R"({"from": "d", "to": "s"}]}' --set system.max_gpus=4)",
          "/network/graph");
}

}  // namespace
}  // namespace weft
