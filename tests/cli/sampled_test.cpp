// sampled against cycle, from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/config_file.h"
#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Sampled : public testing::Test {
 protected:
  Sampled() { setenv("WEFT_REGIMES", (folder_.path() / "regimes.sqlite").c_str(), 1); }

  Json run(const std::string& config, const std::string& options) {
    folder_.write("e.json", config);
    const Ran ran = weft("run e.json --json " + options, folder_);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  }
  static double at(const Json& result, const char* path) { return result.at(Json::json_pointer(path)).get<double>(); }
  static void expect_near(const Json& sampled, const Json& cycle, const char* path, double share) {
    EXPECT_NEAR(at(sampled, path) / at(cycle, path), 1, share) << path;
  }

  TemporaryFolder folder_;
};

constexpr const char* kStep = R"({"system": "dgx-a100", "gpus": 4, "iterations": 2,
  "workload": {"model": "resnet50", "batch": 4, "precision": "amp", "layers": 1},
  "scheme": {"bucket_MiB": 0.5, "first_bucket_MiB": 0.25}, "all_reduce": {"algorithm": "ring"}})";

TEST_F(Sampled, AgreesWithCycleAndNeedsNothingTheSecondTime) {
  const Json cycle = run(kStep, "--fidelity cycle");
  const Json sampled = run(kStep, "--fidelity sampled");
  for (const char* path : {"/iteration/time_s", "/iteration/backward_s", "/iteration/backward_slowdown"}) {
    expect_near(sampled, cycle, path, 0.03);
  }
  EXPECT_NEAR(at(sampled, "/iteration/communication_exposed_s"), at(cycle, "/iteration/communication_exposed_s"),
              0.02 * at(cycle, "/iteration/time_s"));
  expect_near(sampled, cycle, "/gpus/3/hbm_read_bytes", 0.05);
  EXPECT_EQ(sampled.at("links").size(), cycle.at("links").size());
  EXPECT_EQ(sampled.at("collectives").size(), cycle.at("collectives").size());
  EXPECT_LT(at(sampled, "/engine/memory_transactions"), at(cycle, "/engine/memory_transactions") / 3);
  const double error = at(sampled, "/engine/sampling_error_estimate");  // from second samples
  expect_near(sampled, cycle, "/iteration/time_s", error);
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.15);

  Json again = run(kStep, "--fidelity sampled");
  EXPECT_EQ(at(again, "/engine/memory_transactions"), 0);
  EXPECT_EQ(at(again, "/engine/skipped_fraction"), 1);
  EXPECT_EQ(at(again, "/engine/sampling_error_estimate"), error);
  for (const char* part : {"iteration", "collectives", "gpus", "links"}) EXPECT_EQ(again.at(part), sampled.at(part));
}

TEST_F(Sampled, OneGpuStandsForAllBehindSwitches) {
  for (const char* collective : {R"("ring")", R"("in_switch")", R"("in_switch", "registered": true)"}) {
    const std::string config = std::string(R"({"system": "hgx-h100", "gpus": 8, "all_reduce": {"algorithm": )") +
                               collective + R"(}, "workload": {"collective": "all_reduce", "bytes": 3000000}})";
    const Json cycle = run(config, "--fidelity cycle");
    const Json sampled = run(config, "--fidelity sampled");
    expect_near(sampled, cycle, "/collectives/0/end_s", 0.03);
    expect_near(sampled, cycle, "/iteration/communication_s", 0.03);
    EXPECT_LT(at(sampled, "/engine/memory_transactions"), at(cycle, "/engine/memory_transactions") / 6) << collective;
    if (collective[1] == 'i') expect_near(sampled, cycle, "/switches/0/reduced_bytes", 0.05);
  }
}

TEST_F(Sampled, OneGpuStandsForAllOfGathersAndScattersInTheSwitch) {
  for (const char* workload : {R"("all_gather", "bytes": 393216)", R"("reduce_scatter", "bytes": 3145728)"}) {
    const std::string config = std::string(R"({"system": "hgx-h100", "gpus": 8,
      "all_reduce": {"algorithm": "in_switch"}, "workload": {"collective": )") +
                               workload + "}}";
    const Json cycle = run(config, "--fidelity cycle");
    const Json sampled = run(config, "--fidelity sampled");
    expect_near(sampled, cycle, "/collectives/0/end_s", 0.02);
    expect_near(sampled, cycle, "/links/0/bytes", 0.02);
    EXPECT_LT(at(sampled, "/engine/memory_transactions"), at(cycle, "/engine/memory_transactions") / 6) << workload;
  }
}

TEST_F(Sampled, OneGpuStandsForAllOfAShift) {
  const char* config = R"({"system": "dgx-a100", "gpus": 8, "workload": {"collective": "shift", "bytes": 16777216}})";
  const Json cycle = run(config, "--fidelity cycle");
  const Json sampled = run(config, "--fidelity sampled");
  expect_near(sampled, cycle, "/collectives/0/end_s", 0.025);
  expect_near(sampled, cycle, "/links/0/bytes", 0.02);
  EXPECT_LT(at(sampled, "/engine/memory_transactions"), at(cycle, "/engine/memory_transactions") / 6);
}

// Messages that the library cuts evenly, too. Rings and the two levels fold into one GPU, shifts into a node.
TEST_F(Sampled, OneGpuOrNodeStandsForAllNodes) {
  const struct {
    const char* collective;
    const char* algorithm;
    const char* note;
    std::uint32_t gpus = 8;
    double tolerance = 0.022;
  } cases[] = {
      {R"("all_reduce", "bytes": 1048576)", R"("ring", "protocol": "Simple", "channels": 4)",
       "One GPU stands for all 8"},
      // One channel's ring goes through every second node backwards, and no other one makes up for it.
      {R"("all_reduce", "bytes": 1048576)", R"("ring", "protocol": "Simple", "channels": 1)", "4 GPUs stand for all 8"},
      {R"("all_reduce", "bytes": 1048576)", R"("hierarchical", "channels": 4)", "One GPU stands for all 8"},
      {R"("shift", "bytes": 262144)", R"("auto", "protocol": "LL", "channels": 4)", "2 GPUs stand for all 8"},
      // Four nodes' flows to the other rail share spines by a hash, which one node's do not.
      {R"("shift", "bytes": 262144)", R"("auto", "channels": 4)", "2 GPUs stand for all 8", 8, 0.05},
      {R"("all_reduce", "bytes": 1048576)", R"("double_binary_tree", "protocol": "Simple", "channels": 8)",
       "One GPU stands for all 4", 4},
      {R"("all_reduce", "bytes": 1048576)", R"("in_switch", "channels": 4)", "One GPU stands for all 4", 4},
      {R"("all_reduce", "bytes": 65536)", R"("tree", "channels": 4)", "Every GPU was simulated by itself"}};
  for (const auto& [collective, algorithm, note, gpus, tolerance] : cases) {
    const std::string config =
        std::string(R"({"system": {"base": "hgx-h100-cluster", "max_gpus": 8, "gpu": {"compute_units": 24},
      "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 2, "tree": {"radix": 16}}}},
      "workload": {"collective": )") +
        collective + R"(}, "all_reduce": {"algorithm": )" + algorithm + "}, \"gpus\": " + std::to_string(gpus) + "}";
    const Json cycle = run(config, "--fidelity cycle");
    const Json sampled = run(config, "--fidelity sampled");
    EXPECT_THAT(sampled.at("notes").dump(), HasSubstr(note)) << config;
    expect_near(sampled, cycle, "/collectives/0/end_s", tolerance);
    EXPECT_EQ(sampled.at("links").size(), cycle.at("links").size());
    double busiest = 0;  // nodes take different lanes for a few flits of flags
    for (const Json& link : cycle.at("links")) busiest = std::max(busiest, link.at("bytes").get<double>());
    for (std::size_t i = 0; i < cycle.at("links").size(); ++i) {
      const Json& link = cycle.at("links").at(i);
      EXPECT_EQ(sampled.at("links").at(i).at("name"), link.at("name"));
      if (link.at("name").get<std::string>().find("router", 6) != std::string::npos) continue;  // spines go by a hash
      EXPECT_NEAR(sampled.at("links").at(i).at("bytes").get<double>(), link.at("bytes").get<double>(), 0.01 * busiest)
          << link.at("name");
    }
  }
}

// In place of trees in which each node does something else, two in which all are alike, and about as fast.
TEST_F(Sampled, OneGpuStandsForAllNodesOfTrees) {
  const struct {
    const char* algorithm;
    const char* bytes;
    bool folds = true;
  } cases[] = {{R"("in_switch", "channels": 4)", "1048576"},
               {R"("double_binary_tree", "protocol": "LL128", "channels": 8)", "262144"},
               {R"("double_binary_tree", "protocol": "Simple", "channels": 8)", "65536", false}};
  for (const auto& [algorithm, bytes, folds] : cases) {
    const std::string config =
        std::string(R"({"system": {"base": "hgx-h100-cluster", "max_gpus": 12, "gpu": {"compute_units": 24},
      "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 2, "tree": {"radix": 16}}}}, "gpus": 12,
      "workload": {"collective": "all_reduce", "bytes": )") +
        bytes + R"(}, "all_reduce": {"algorithm": )" + algorithm + "}}";
    const Json cycle = run(config, "--fidelity cycle");
    const Json sampled = run(config, "--fidelity sampled");
    EXPECT_THAT(sampled.at("notes").dump(), HasSubstr(folds ? "One GPU stands for all 12" : "by itself")) << config;
    EXPECT_EQ(sampled.at("notes").dump().find("all nodes are alike") != std::string::npos, folds);
    expect_near(sampled, cycle, "/collectives/0/end_s", folds ? 0.06 : 0.02);
    EXPECT_GT(at(sampled, "/engine/sampling_error_estimate"), folds ? 0.03 : -1);
  }
}

TEST_F(Sampled, GpusThatShareNicsAreSimulatedOneByOneInTreesOfSwitches) {
  const std::string config = R"({"system": {"base": "hgx-h100-cluster", "max_gpus": 8, "gpu": {"compute_units": 24},
    "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 1, "tree": {"radix": 16}}}}, "gpus": 8,
    "workload": {"collective": "all_reduce", "bytes": 1048576}, "all_reduce": {"algorithm": "in_switch", "channels": 4}})";
  const Json sampled = run(config, "--fidelity sampled");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("GPUs share the NICs"));
  expect_near(sampled, run(config, "--fidelity cycle"), "/collectives/0/end_s", 0.02);
}

// A shift takes all of a node, so the trees of its sums do, too. Who is through with it first goes on, where its piece
// leaves by another GPU's NIC.
TEST_F(Sampled, ANodeStandsForTwoWhereSomeCollectivesNeedAllOfIt) {
  const std::string config = R"({"system": {"base": "hgx-h100-cluster", "max_gpus": 8, "gpu": {"compute_units": 24},
    "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 2, "tree": {"radix": 16}}}}, "gpus": 4,
    "workload": {"model": "attention", "sequence": 1024, "hidden": 512, "heads": 8, "causal": true},
    "scheme": {"name": "ring_attention", "split": "striped"}, "all_reduce": {"algorithm": "in_switch"}})";
  for (const char* pxn : {" --set system.collectives.pxn=true", " --set system.collectives.pxn=false"}) {
    const Json cycle = run(config, std::string("--fidelity cycle") + pxn);
    const Json sampled = run(config, std::string("--fidelity sampled") + pxn);
    EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("2 GPUs stand for all 4"));
    expect_near(sampled, cycle, "/iteration/time_s", 0.02);
    expect_near(sampled, cycle, "/iteration/backward_s", 0.06);  // 105 us, of 636: 5 us less
  }
}

// Packets of all pairs meet before NICs, which few GPUs do not know; a ring stays on its rail.
TEST_F(Sampled, NodesAreSimulatedOneByOneWhereTheyMayContend) {
  for (const bool all_pairs : {false, true}) {
    const std::string config =
        std::string(R"({"system": {"base": "hgx-h100-cluster", "max_gpus": 8, "gpu": {"compute_units": 24},
      "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 2, "tree": {"radix": 16}}}}, "gpus": 8,
      "workload": {"collective": )") +
        (all_pairs ? R"("all_to_all", "bytes": 65536)" : R"("all_reduce", "bytes": 1048576)") +
        R"(}, "all_reduce": {"channels": 4, "algorithm": "auto", "protocol": "Simple"}})";
    const Json sampled = run(config, all_pairs ? "--fidelity sampled --set system.collectives.pxn=false"
                                               : "--fidelity sampled --set all_reduce.algorithm=ring");
    EXPECT_THAT(sampled.at("notes").dump(), HasSubstr(all_pairs ? "packets of many GPUs meet" : "One GPU stands"));
  }
}

// A collective by itself repeats its steps, and in long ones its rounds.
TEST_F(Sampled, LeavesOutWhatCollectivesRepeat) {
  const char* ring =
      R"({"system": {"base": "hgx-h100", "max_gpus": 24, "network": {"topology": "ring"}, "switch_reduce": null},
    "gpus": 24, "workload": {"collective": "all_reduce", "bytes": 1572864},
    "all_reduce": {"algorithm": "ring", "protocol": "Simple", "channels": 1}})";
  // A fault of factor 1 changes nothing, but that every GPU is simulated.
  const char* low_latency =
      R"({"system": {"base": "hgx-h100", "max_gpus": 24, "switch_reduce": null, "network": {"topology": "ring",
      "faults": [{"link": "router0->router1", "factor": 1}]}},
    "gpus": 24, "workload": {"collective": "all_reduce", "bytes": 393216},
    "all_reduce": {"algorithm": "ring", "protocol": "LL", "channels": 1}})";
  const char* long_steps = R"({"system": "dgx-a100", "gpus": 2, "workload": {"collective": "all_reduce",
    "bytes": 16777216}, "all_reduce": {"algorithm": "ring", "protocol": "Simple", "channels": 4}})";
  const char* in_switch = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 2,
    "workload": {"collective": "all_reduce", "bytes": 100663296},
    "all_reduce": {"algorithm": "in_switch", "channels": 2}})";
  const char* gather = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 2,
    "workload": {"collective": "all_gather", "bytes": 50331648},
    "all_reduce": {"algorithm": "in_switch", "channels": 2}})";
  for (const char* config : {ring, low_latency, long_steps, in_switch, gather}) {
    const Json cycle = run(config, "--fidelity cycle");
    const Json sampled = run(config, "--fidelity sampled");
    expect_near(sampled, cycle, "/collectives/0/end_s", config == gather ? 0.04 : 0.02);
    expect_near(sampled, cycle, "/gpus/0/hbm_read_bytes", 0.05);
    expect_near(sampled, cycle, "/links/0/bytes", 0.02);
    // 23 steps that sum, 23 that pass on: each kind is watched before some of it is left out.
    EXPECT_GT(at(sampled, "/engine/skipped_fraction"), config == low_latency ? 0.25 : 0.4) << config;
    EXPECT_GT(at(sampled, "/engine/sampling_error_estimate"), 0) << config;
  }
}

// Cut into chunks of 19200 B, messages of LL128 leave some channels less to do than others.
TEST_F(Sampled, AFoldedMessageTakesAsLongAsItsFullestBlock) {
  const char* config = R"({"system": "dgx-a100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 3145728},
    "all_reduce": {"algorithm": "ring", "protocol": "LL128"}})";
  expect_near(run(config, "--fidelity sampled"), run(config, "--fidelity cycle"), "/collectives/0/end_s", 0.01);
}

// By the one as by the other cut, the first blocks have nothing to do; and lines with flags are not told in coarser
// ones because those blocks have none.
TEST_F(Sampled, AFoldedMessageMayLeaveBlocksWithoutWork) {
  const char* config = R"({"system": "dgx-a100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 8388608},
    "all_reduce": {"algorithm": "direct", "protocol": "LL128"}})";
  expect_near(run(config, "--fidelity sampled"), run(config, "--fidelity cycle"), "/collectives/0/end_s", 0.01);
}

// Their steps are of several kinds: each window has to have them all.
TEST_F(Sampled, LeavesOutWhatEnginesRepeat) {
  const char* config = R"({"system": "hgx-h100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 67108864},
    "all_reduce": {"algorithm": "ring", "mover": "endpoint_engine"}})";
  const Json cycle = run(config, "--fidelity cycle");
  const Json sampled = run(config, "--fidelity sampled");
  expect_near(sampled, cycle, "/collectives/0/end_s", 0.02);
}

// Kernels of many waves beside collectives: windows of whole waves that were seen of other collectives are forgotten.
TEST_F(Sampled, WindowsOfWavesEndWithTheirCollectives) {
  const Json sampled =
      run(R"({"system": "hgx-h100", "gpus": 4, "scheme": {"name": "ring_self_attention", "split": "striped"},
    "workload": {"model": "attention", "sequence": 4096, "hidden": 1024, "heads": 8, "causal": true}})",
          "--fidelity sampled");
  EXPECT_NEAR(at(sampled, "/iteration/time_s"), 1055e-6, 0.02 * 1055e-6);  // in `cycle`
}

// The root of a tree is through long before its leaves.
TEST_F(Sampled, ACollectiveLastsUntilTheLastGpuIsThrough) {
  const std::string tree = R"({"system": {"base": "hgx-h100", "max_gpus": 4, "switch_reduce": null,
      "network": {"topology": "torus", "dimensions": [2, 2], "lanes": 9, "link": {"bandwidth_GBps": 0.78125}}},
    "workload": {"collective": "all_reduce", "bytes": 400000}, "all_reduce": {"algorithm": "tree"}})";
  const Json cycle = run(tree, "--fidelity cycle");
  const Json sampled = run(tree, "--fidelity sampled");
  expect_near(sampled, cycle, "/collectives/0/end_s", 0.1);
  expect_near(sampled, cycle, "/iteration/time_s", 0.1);
}

TEST_F(Sampled, SimulatesEachGpuWhereTheyDiffer) {
  const std::string mesh = R"({"system": "dgx1-v100", "gpus": 8,
    "workload": {"collective": "all_reduce", "bytes": 262144}})";
  expect_near(run(mesh, "--fidelity sampled"), run(mesh, "--fidelity cycle"), "/collectives/0/end_s", 0.01);
  const std::string late = R"({"system": "dgx-a100", "gpus": 2,
    "workload": {"collective": "all_reduce", "bytes": 262144, "start_delay_us": [0, 20]}})";
  EXPECT_EQ(at(run(late, "--fidelity sampled"), "/iteration/time_s"),
            at(run(late, "--fidelity cycle"), "/iteration/time_s"));
}

}  // namespace
}  // namespace weft
