// Functional mode, end to end: what collectives really compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

using testing::HasSubstr;

// Few units and credits: a small machine in which replies queue.
constexpr const char* kBase = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24},
                                             "network": {"link": {"credits": 8}}},
  "gpus": 8, "workload": {"collective": "all_reduce", "bytes": 16384},
  "all_reduce": {"algorithm": "in_switch", "protocol": "Simple"}, "functional": {}})";

Json result_of(const std::string& sets) {
  TemporaryFolder folder;
  folder.write("f.json", kBase);
  std::string arguments = "run f.json --no-progress --json";
  std::istringstream words(sets);
  for (std::string word; words >> word;) arguments += word.starts_with("--") ? " " + word : " --set '" + word + "'";
  const Ran run = weft(arguments, folder);
  EXPECT_EQ(run.code, 0) << run.errors;
  return run.code == 0 ? Json::parse(run.output) : Json();
}

std::string error_of(const std::string& set) {
  TemporaryFolder folder;
  folder.write("f.json", kBase);
  const Ran run = weft("run f.json --no-progress --set '" + set + "'", folder);
  EXPECT_EQ(run.code, 65) << set;
  return run.errors;
}

void expect_right(const Json& result, std::int64_t elements) {
  const Json& functional = result.at("functional");
  EXPECT_EQ(functional.at("wrong"), 0) << functional.dump();
  EXPECT_EQ(functional.at("same_on_all_ranks"), true) << functional.dump();
  EXPECT_EQ(functional.at("elements"), elements);
}

TEST(FunctionalEndToEnd, ArrivalOrderDiffersInTheLastBitsAndNotBetweenRanks) {
  const std::string jittered = "workload.bytes=131072 workload.start_jitter_ns=3000 seed=";
  const Json first = result_of(jittered + "1");
  const Json second = result_of(jittered + "2");
  expect_right(first, 32768);
  expect_right(second, 32768);
  EXPECT_NE(first["functional"]["digest"], second["functional"]["digest"]);
}

TEST(FunctionalEndToEnd, FixedOrderIsTheSameToTheBit) {
  const std::string jittered = "workload.bytes=131072 workload.start_jitter_ns=3000 switch_reduce.order=fixed seed=";
  const Json first = result_of(jittered + "1");
  const Json second = result_of(jittered + "2");
  expect_right(first, 32768);
  EXPECT_EQ(first["functional"]["digest"], second["functional"]["digest"]);
  EXPECT_NE(first["iteration"]["time_s"], second["iteration"]["time_s"]);
  EXPECT_EQ(first["functional"]["order"], "fixed");
}

TEST(FunctionalEndToEnd, NarrowTypesStayWithinTheBound) {
  expect_right(result_of("workload.type=fp16 functional.values=cancellation"), 8192);
  expect_right(result_of("workload.type=bf16 functional.values=overflow"), 8192);
  expect_right(result_of("switch_reduce.adders.lanes.fp8=16 workload.type=fp8_e4m3 functional.values=special "
                         "switch_reduce.accumulation=fp16"),
               16384);
  const Json integers = result_of("workload.type=int32 functional.values=uniform");
  expect_right(integers, 4096);
  EXPECT_EQ(integers["functional"]["correctly_rounded"], 4096);
}

TEST(FunctionalEndToEnd, OtherAlgorithmsComputeWhatTheyShould) {
  for (const char* sets :
       {"all_reduce.algorithm=ring workload.type=fp16",
        "all_reduce.algorithm=ring all_reduce.protocol=Simple host.gpus_per_process=2", "all_reduce.algorithm=direct",
        "all_reduce.algorithm=double_binary_tree", "all_reduce.registered=true"}) {
    SCOPED_TRACE(sets);
    const Json result = result_of(std::string("workload.bytes=65536 ") + sets);
    expect_right(result, std::string(sets).find("fp16") == std::string::npos ? 16384 : 32768);
  }
}

// The last GPU of a node sends to the first of the next one: by the NIC of the first of its own node.
TEST(FunctionalEndToEnd, WhatAnotherGpusNicCarriesArrives) {
  for (const char* nics : {"8", "2"}) {
    const Json result =
        result_of(std::string("system.base=hgx-h100-cluster gpus=16 workload.collective=shift "
                              "workload.start_jitter_ns=3000 workload.bytes=262144 all_reduce.algorithm=auto "
                              "network.cluster.nics_per_node=") +
                  nics);
    EXPECT_EQ(result["functional"]["wrong"], 0) << nics;
    EXPECT_EQ(result["functional"]["elements"], 16 * 65536);
  }
}

TEST(FunctionalEndToEnd, OtherCollectivesToo) {
  const Json scattered = result_of("workload.collective=reduce_scatter all_reduce.algorithm=ring");
  EXPECT_EQ(scattered["functional"]["wrong"], 0);
  EXPECT_EQ(scattered["functional"]["elements"], 4096);  // over all ranks
  EXPECT_TRUE(scattered["functional"]["same_on_all_ranks"].is_null());
  const Json gathered = result_of("workload.collective=all_gather all_reduce.algorithm=ring functional.values=special");
  expect_right(gathered, 8 * 4096);
  EXPECT_EQ(gathered["functional"]["correctly_rounded"], 8 * 4096);
}

TEST(FunctionalEndToEnd, GathersAndScattersInTheSwitchAreRight) {
  // Six GPUs, a loop that the message does not fill, a lane that is out and ranks that are late.
  const std::string sets = R"(gpus=6 workload.bytes=99840 network.faults=[{"link":"gpu1->switch2.0","factor":0}] )"
                           "workload.start_jitter_ns=3000 ";
  for (const char* registered : {"", "all_reduce.registered=true "}) {
    SCOPED_TRACE(registered);
    // The switch adds no FP8, and need not.
    const Json gathered = result_of(sets + registered + "workload.collective=all_gather workload.type=fp8_e4m3");
    EXPECT_EQ(gathered["collectives"][0]["algorithm"], "in_switch");
    expect_right(gathered, 6 * 99840);
    EXPECT_EQ(gathered["functional"]["correctly_rounded"], 6 * 99840);
    for (const char* type : {"fp16", "bf16"}) {
      const Json scattered = result_of(sets + registered + "workload.collective=reduce_scatter workload.type=" + type);
      EXPECT_EQ(scattered["collectives"][0]["algorithm"], "in_switch");
      EXPECT_EQ(scattered["functional"]["wrong"], 0) << scattered["functional"].dump();
      EXPECT_EQ(scattered["functional"]["elements"], 49920);
      EXPECT_EQ(scattered["functional"]["correctly_rounded"], 49920);  // summed in FP32, rounded once
    }
  }
}

TEST(FunctionalEndToEnd, SeveralGroupsScatterAtOnceEachInItsOwnOrder) {
  const std::string sets =
      "workload.collective=reduce_scatter workload.bytes=245760 workload.start_jitter_ns=3000 "
      "workload.groups=[[0,3,5],[1,2,4,6,7]] seed=";
  const Json first = result_of(sets + "1");
  const Json second = result_of(sets + "2");
  EXPECT_EQ(first["functional"]["wrong"], 0);
  EXPECT_EQ(first["functional"]["elements"], 2 * 61440);
  EXPECT_NE(first["functional"]["digest"], second["functional"]["digest"]);
}

TEST(FunctionalEndToEnd, AShiftBringsWhatTheRankBeforeHad) {
  const Json shifted = result_of("workload.collective=shift all_reduce.algorithm=direct functional.values=special");
  EXPECT_EQ(shifted["functional"]["elements"], 8 * 4096);  // over all ranks
  EXPECT_EQ(shifted["functional"]["correctly_rounded"], 8 * 4096);
  EXPECT_TRUE(shifted["functional"]["same_on_all_ranks"].is_null());
}

TEST(FunctionalEndToEnd, ThreadsDoNotShow) {
  EXPECT_EQ(without_engine(result_of("workload.bytes=65536")).dump(),
            without_engine(result_of("workload.bytes=65536 --threads=2")).dump());
}

TEST(FunctionalEndToEnd, ValuesDoNotChangeTimes) {
  TemporaryFolder folder;
  Json without = Json::parse(kBase);
  without.erase("functional");
  folder.write("f.json", without.dump());
  const Ran run = weft("run f.json --no-progress --json", folder);
  ASSERT_EQ(run.code, 0) << run.errors;
  const Json timed = Json::parse(run.output);
  EXPECT_FALSE(timed.contains("functional"));
  EXPECT_EQ(timed["collectives"], result_of("")["collectives"]);
}

TEST(FunctionalEndToEnd, RefusesWhatValuesDoNotTravelBy) {
  EXPECT_THAT(error_of("iterations=2"), HasSubstr("/iterations: expected 1 with functional"));
  EXPECT_THAT(error_of(R"(all_reduce={"algorithm": "ring", "protocol": "LL"})"), HasSubstr("expected \"Simple\""));
  EXPECT_THAT(error_of(R"(workload={"model": "resnet50", "batch": 1})"),
              HasSubstr("/functional: expected a collective"));
  EXPECT_THAT(error_of(R"(functional={"values": "normall"})"), HasSubstr("normal"));
  EXPECT_THAT(error_of(R"(switch_reduce={"order": "fixed", "table_bytes_per_port": 512})"),
              HasSubstr("expected an entry of 1024 B or more, got 512"));
  const std::string push =
      R"(collectives.in_switch={"form": "push"}' --set 'all_reduce.registered=true' --set 'switch_reduce.timeout_ns=10000)";
  EXPECT_THAT(error_of(push), HasSubstr("/functional: expected what is pulled"));
  EXPECT_THAT(error_of(push + "' --set 'switch_reduce.order=fixed"), HasSubstr("fixed order only what is pulled"));
}

}  // namespace
}  // namespace weft
