#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cli/config/run_config.h"
#include "cli/config/system_json.h"
#include "cli/config/system_of.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/hash.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Json experiment() { return Json::parse(R"({"system": "hgx-h100", "workload": {"model": "resnet50", "batch": 16}})"); }

RunConfig read_with(const std::vector<std::string>& sets, Json document = experiment()) {
  for (const auto& set : sets) apply_set(document, set, "e.json");
  return read_run_config(document, "e.json");
}

std::string error_with(const std::vector<std::string>& sets, const Json& document = experiment()) {
  try {
    static_cast<void>(read_with(sets, document));
  } catch (const InputError& e) {
    EXPECT_EQ(e.code(), ExitCode::bad_input);
    return e.what();
  }
  return "no error";
}

TEST(RunConfig, HasADefaultForEverythingButSystemAndWork) {
  const RunConfig config = read_with({});
  EXPECT_EQ(config.gpus, 8U);
  EXPECT_EQ(std::get<ModelWorkload>(config.workload).precision, "amp");
  EXPECT_TRUE(config.scheme.overlap);
  EXPECT_EQ(config.scheme.bucket_MiB, 25);
  EXPECT_EQ(config.collective.algorithm, AllReduceAlgorithm::automatic);
  EXPECT_EQ(config.collective.mover, Mover::compute_units);
  EXPECT_EQ(config.host.gpus_per_process, 1U);
  EXPECT_FALSE(config.host.cuda_graph);
  EXPECT_FALSE(config.private_parts.compute_units || config.private_parts.cache || config.private_parts.hbm);
  EXPECT_EQ(config.iterations, 1U);
  EXPECT_EQ(config.fidelity, Fidelity::cycle);
  EXPECT_EQ(config.seed, 1U);
}

TEST(RunConfig, ReadsEveryKey) {
  const RunConfig config = read_run_config(Json::parse(R"({
    "system": "dgx-a100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 268435456},
    "scheme": {"name": "data_parallel", "overlap": false, "bucket_MiB": 10, "first_bucket_MiB": 2},
    "all_reduce": {"algorithm": "in_switch", "mover": "compute_units"}, "host": {"gpus_per_process": 4, "cuda_graph": true},
    "private": {"compute_units": true, "cache": true, "hbm": true, "links": true},
    "switch_reduce": {"preset": "nvswitch3"}, "iterations": 2, "fidelity": "cycle", "seed": 7, "threads": 3})"),
                                           "e.json");
  EXPECT_EQ(config.gpus, 4U);
  EXPECT_EQ(std::get<CollectiveWorkload>(config.workload).bytes, Bytes(268435456));
  EXPECT_FALSE(config.scheme.overlap);
  EXPECT_EQ(config.scheme.bucket_MiB, 10);
  EXPECT_EQ(config.scheme.first_bucket_MiB, 2);
  EXPECT_EQ(config.collective.algorithm, AllReduceAlgorithm::in_switch);
  EXPECT_EQ(config.host.gpus_per_process, 4U);
  EXPECT_TRUE(config.host.cuda_graph);
  EXPECT_TRUE(config.private_parts.compute_units && config.private_parts.cache && config.private_parts.hbm);
  EXPECT_EQ(config.iterations, 2U);
  EXPECT_EQ(config.seed, 7U);
  EXPECT_EQ(config.threads, 3U);
}

TEST(RunConfig, ResolvesToTheSameBytesAgain) {
  for (const char* system : {"hgx-h100", "dgx-a100"}) {
    const RunConfig once = read_with({std::string("system=") + system, "network.link.latency_ns=173.3", "seed=3"});
    const RunConfig again = read_run_config(Json::parse(once.resolved.dump()), "config.json");
    EXPECT_EQ(once.resolved.dump(), again.resolved.dump());
    EXPECT_EQ(once.sha256, again.sha256);
    EXPECT_EQ(once.sha256, sha256(once.resolved.dump()));
  }
}

TEST(RunConfig, IsTheSameHoweverItIsWritten) {
  const RunConfig named = read_with({"network.link.credits=99"});
  const RunConfig inside = read_with({R"(system={"base": "hgx-h100", "network": {"link": {"credits": 99}}})"});
  EXPECT_EQ(named.resolved.dump(), inside.resolved.dump());
  EXPECT_NE(named.sha256, read_with({}).sha256);
}

TEST(RunConfig, DoesNotDependOnThreads) { EXPECT_EQ(read_with({"threads=8"}).sha256, read_with({}).sha256); }

TEST(RunConfig, NamesTheNearestKey) {
  EXPECT_EQ(error_with({"systm=1"}), "e.json: /systm: expected a known key (the nearest is \"system\"), got \"systm\"");
  EXPECT_THAT(
      error_with({"network.link.bandwith_GBps=300"}),
      StartsWith("e.json: /network/link/bandwith_GBps: expected a known key (the nearest is \"bandwidth_GBps\")"));
  EXPECT_THAT(error_with({"workload.bacth=3"}), StartsWith("e.json: /workload/bacth: expected a known key"));
  EXPECT_THAT(error_with({"scheme.bucket_MB=3"}), HasSubstr("the nearest is \"bucket_MiB\""));
}

TEST(RunConfig, SaysThatASweepIsOne) {
  EXPECT_THAT(error_with({}, Json::parse(R"({"base": "x.json", "grid": {"gpus": [2, 4]}})")),
              StartsWith("e.json: expected a configuration, got a sweep, whose points run by: weft sweep"));
}

// A GPU of fewer units than a board has GPCs for has as many as `gpcs` says, as even as can be.
TEST(RunConfig, TakesGpcsOfABoardForAllItsUnitsOnly) {
  EXPECT_EQ(read_with({}).system.gpu.gpc_units.size(), 12U);
  EXPECT_EQ(read_with({}).system.gpu.gpcs, 12U);
  const GpuSpec fewer = read_with({"gpu.compute_units=64"}).system.gpu;
  EXPECT_TRUE(fewer.gpc_units.empty());
  EXPECT_EQ(fewer.gpcs, 8U);
}

// Another amount of shared memory is another chip's, whose carveouts are not known.
TEST(RunConfig, TakesCarveoutsForTheSharedMemoryThatTheyEndWith) {
  const auto carveouts_with = [](const std::vector<std::string>& settings) {
    return read_with(settings).system.gpu.compute_unit.shared_memory_carveouts_KiB;
  };
  EXPECT_EQ(carveouts_with({}).back(), 228U);
  EXPECT_TRUE(carveouts_with({"gpu.compute_unit.shared_memory_bytes=131072"}).empty());
  EXPECT_THAT(
      error_with({"gpu.compute_unit.shared_memory_carveouts_KiB=[64, 8, 228]"}),
      StartsWith("e.json: /gpu/compute_unit/shared_memory_carveouts_KiB: expected ascending sizes, got 64, 8, 228"));
}

TEST(RunConfig, RefusesImpossibleNumbersWhereTheyStand) {
  EXPECT_THAT(error_with({"network.link.bandwidth_GBps=-25"}), StartsWith("e.json: /network/link/bandwidth_GBps: "));
  EXPECT_THAT(error_with({"network.link.latency_ns=0"}), StartsWith("e.json: /network/link/latency_ns: "));
  EXPECT_THAT(error_with({"gpu.clock_MHz=0"}), StartsWith("e.json: /gpu/clock_MHz: "));
  EXPECT_THAT(error_with({"gpu.hbm.memory_GiB=-1"}), StartsWith("e.json: /gpu/hbm/memory_GiB: "));
  EXPECT_THAT(error_with({"gpu.compute_unit.attention_efficiency.forward=1e-9"}),
              HasSubstr("/gpu/compute_unit/attention_efficiency/forward: expected 0 or at least 0.001, got 1e-09"));
  EXPECT_THAT(error_with({"gpu.l2.bytes=1000000"}), HasSubstr("a multiple of slices * ways * 128 B"));
  EXPECT_THAT(error_with({"network.links_per_gpu=3"}), HasSubstr("expected at least 4 (one to each switch), got 3"));
  EXPECT_THAT(error_with({"workload.batch=0"}), StartsWith("e.json: /workload/batch: "));
  EXPECT_THAT(error_with({"iterations=99999999999999999999"}), StartsWith("e.json: /iterations: "));
  EXPECT_THAT(error_with({"scheme.bucket_MiB=0"}), StartsWith("e.json: /scheme/bucket_MiB: "));
  EXPECT_THAT(error_with({"collectives.shared_memory_bytes=300000"}), StartsWith("e.json: /collectives: "));
  EXPECT_THAT(error_with({R"(system={"base": "hgx-h100", "gpu": {"compute_units": 0}})"}),
              StartsWith("e.json: /system/gpu/compute_units: "));
}

TEST(RunConfig, AllowsAsManyGpusAsTheSystemHas) {
  EXPECT_EQ(error_with({"gpus=9"}), "e.json: /gpus: expected an integer from 1 to 8, got 9");
  EXPECT_THAT(error_with({"gpus=0"}), StartsWith("e.json: /gpus: "));
  EXPECT_THAT(error_with({"gpus=2", "host.gpus_per_process=4"}),
              StartsWith("e.json: /host/gpus_per_process: expected an integer from 1 to 2"));
}

TEST(RunConfig, SaysWhichKeyAddsReducingSwitches) {
  EXPECT_THAT(error_with({"system=dgx-a100", "all_reduce.algorithm=in_switch"}),
              testing::AllOf(StartsWith("e.json: /all_reduce/algorithm: expected"), HasSubstr("\"switch_reduce\"")));
  EXPECT_THAT(error_with({"switch_reduce=null", "all_reduce.algorithm=in_switch"}), HasSubstr("\"switch_reduce\""));
  EXPECT_EQ(error_with({"system=dgx-a100", "all_reduce.algorithm=in_switch", "switch_reduce.preset=nvswitch3"}),
            "no error");
}

TEST(RunConfig, SaysWhatThisVersionHas) {
  EXPECT_EQ(
      error_with({"all_reduce.algorithm=star"}),
      "e.json: /all_reduce/algorithm: expected one of \"auto\", \"ring\", \"in_switch\", \"in_network\", \"tree\", "
      "\"double_binary_tree\", \"halving_doubling\", \"direct\", \"hierarchical\", got \"star\"");
  EXPECT_EQ(error_with({"all_reduce.protocol=LL64"}),
            "e.json: /all_reduce/protocol: expected one of \"auto\", \"Simple\", \"LL\", \"LL128\", got \"LL64\"");
  EXPECT_THAT(error_with({"all_reduce.mover=dma"}), StartsWith("e.json: /all_reduce/mover: expected one of"));
  EXPECT_EQ(error_with({"fidelity=fast"}), "e.json: /fidelity: expected one of \"cycle\", \"sampled\", got \"fast\"");
  EXPECT_THAT(error_with({"scheme.name=pipeline"}),
              StartsWith("e.json: /scheme/name: expected one of \"data_parallel\", \"single_sample\""));
  EXPECT_THAT(error_with({"workload.precision=fp8"}), StartsWith("e.json: /workload/precision: expected one of"));
}

TEST(RunConfig, WantsExactlyOneWorkload) {
  EXPECT_EQ(error_with({"workload.collective=all_reduce"}),
            "e.json: /workload: expected exactly one of \"trace\", \"model\" and \"collective\", got \"model\" and "
            "\"collective\"");
  EXPECT_THAT(error_with({"workload={}"}), HasSubstr("got none"));
  EXPECT_THAT(error_with({R"(workload={"modle": "vgg16"})"}), HasSubstr("the nearest is \"model\""));
  EXPECT_THAT(error_with({}, Json::parse(R"({"system": "hgx-h100"})")),
              HasSubstr("/workload: expected an object, got nothing"));
}

TEST(RunConfig, FindsATraceBesideTheConfiguration) {
  const TemporaryFolder folder;
  folder.write("traces/t.json.gz", "x");
  const auto file = folder.write("e.json", R"({"system": "dgx-a100", "workload": {"trace": "traces/t.json.gz"}})");
  const RunConfig config = read_run_config(file, {});
  const std::string found = std::get<TraceWorkload>(config.workload).file;
  EXPECT_TRUE(std::filesystem::path(found).is_absolute());
  EXPECT_EQ(found, std::filesystem::canonical(folder.path() / "traces" / "t.json.gz"));
  EXPECT_EQ(read_run_config(config.resolved, "elsewhere/config.json").sha256, config.sha256);
}

TEST(RunConfig, SaysThatATraceIsMissing) {
  EXPECT_THROW(static_cast<void>(read_with({R"(workload={"trace": "no-such-trace.json"})"})), MissingInput);
}

TEST(SystemConfig, OverridesPartsOfANamedSystem) {
  const RunConfig config =
      read_with({"network.link.bandwidth_GBps=300", "gpu.l2.ways=8", "switch_reduce.latency_ns=5"});
  EXPECT_EQ(config.system.network.link.bandwidth, gigabytes_per_second(300));
  EXPECT_EQ(config.system.network.links_per_gpu, 18U);
  EXPECT_EQ(config.system.gpu.l2.ways, 8U);
  EXPECT_EQ(config.system.switch_reduce.value().latency, nanoseconds(5));
  EXPECT_EQ(config.system.switch_reduce.value().table_bytes_per_port, 40960);
}

TEST(SystemConfig, AddsAndRemovesReducingHardware) {
  EXPECT_FALSE(read_with({"system=dgx-a100"}).system.switch_reduce.has_value());
  const auto added =
      read_with({"system=dgx-a100", R"(switch_reduce={"preset": "nvswitch3", "table_bytes_per_port": 4096})"});
  EXPECT_EQ(added.system.switch_reduce.value().table_bytes_per_port, 4096);
  EXPECT_EQ(added.system.switch_reduce.value().entry_bytes, 128U);
  EXPECT_FALSE(read_with({"switch_reduce=null"}).system.switch_reduce.has_value());
}

// What an included file has for another link, topology or switch gives way.
TEST(SystemConfig, PresetsAndTopologiesGoOverIncludedOnes) {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"system": {"base": "hgx-h100", "network": {"link": {"bandwidth_GBps": 7}}},
    "network": {"link": {"bandwidth_GBps": 9, "latency_ns": 11}, "switch": {"latency_ns": 3}},
    "switch_reduce": {"entry_bytes": 64, "table_bytes_per_port": 4096, "adders": {"bits": 128, "clock_MHz": 1000},
                      "latency_ns": 1},
    "workload": {"model": "vgg16", "batch": 1}})");
  folder.write("link.json", R"({"include": "base.json", "network": {"link": {"preset": "nvlink5", "credits": 5}}})");
  const LinkSpec link = read_run_config(folder.path() / "link.json", {}).system.network.link;
  EXPECT_EQ(link.bandwidth, gigabytes_per_second(50));
  EXPECT_NE(link.latency, nanoseconds(11));
  EXPECT_EQ(link.credits, 5U);

  folder.write("reduce.json", R"({"include": "base.json", "switch_reduce": {"preset": "nvswitch3"}})");
  EXPECT_EQ(read_run_config(folder.path() / "reduce.json", {}).system.switch_reduce.value().entry_bytes, 128U);

  folder.write("mesh.json", R"({"include": "base.json", "switch_reduce": null,
    "network": {"topology": "mesh", "dimensions": [4, 2], "switch": {"speedup": 2}}})");
  EXPECT_EQ(read_run_config(folder.path() / "mesh.json", {}).system.network.topology, TopologyKind::mesh);
  folder.write("back.json", R"({"include": "mesh.json",
    "network": {"topology": "switched", "links_per_gpu": 18, "switches": 2}})");
  const NetworkSpec back = read_run_config(folder.path() / "back.json", {}).system.network;
  EXPECT_EQ(back.switches, 2U);
  EXPECT_EQ(back.link.latency, nanoseconds(11));
}

TEST(SystemConfig, NamesTheNearestSystemAndPreset) {
  const std::string near = error_with({"system=hgx-h10"});
  EXPECT_THAT(near, StartsWith("e.json: /system: expected one of \"dgx-a100\", "));
  EXPECT_THAT(near, HasSubstr("got \"hgx-h10\"; the nearest is \"hgx-h100\""));
  EXPECT_THAT(error_with({"switch_reduce.preset=nvswitch"}),
              StartsWith("e.json: /switch_reduce/preset: expected one of \"nvswitch3\""));
  EXPECT_THAT(error_with({R"(system={"base": "dgx-a10"})"}), StartsWith("e.json: /system/base: "));
}

TEST(SystemConfig, RefusesOtherKinds) {
  EXPECT_THAT(error_with({"system=3"}), HasSubstr("/system: expected the name of a system or an object, got 3"));
  EXPECT_THAT(error_with({"network=3"}), HasSubstr("/network: expected an object, got 3"));
  EXPECT_THAT(error_with({"switch_reduce=3"}), HasSubstr("/switch_reduce: expected an object or null, got 3"));
  EXPECT_THAT(error_with({}, Json::parse(R"({"workload": {"model": "vgg16", "batch": 1}})")),
              HasSubstr("/system: expected the name of a system or an object, got nothing"));
  EXPECT_THAT(error_with({R"(system={"name": "x"})"}), HasSubstr("/system/max_gpus: expected an integer"));
}

TEST(SystemConfig, HasNoReducingSwitchesWithoutSwitches) {
  const std::vector<std::string> direct{"network.topology=fully_connected", "network.switches=0"};
  EXPECT_EQ(error_with(direct), "no error");
  EXPECT_EQ(error_with({direct[0], direct[1], "switch_reduce=null"}), "no error");
  EXPECT_THAT(error_with({direct[0], direct[1], "switch_reduce.preset=nvswitch3"}),
              HasSubstr("/switch_reduce: expected no reducing hardware in a network without switches"));
  EXPECT_THAT(error_with({direct[0], direct[1], "all_reduce.algorithm=in_switch"}),
              HasSubstr("only a \"switched\" network has switches that do"));
}

}  // namespace
}  // namespace weft
