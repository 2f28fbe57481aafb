// Kernels whose stores reduce as they leave, end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Four GPUs; rows of 512 numbers of 2 B: [256, 512] is 2048 lines.
constexpr std::int64_t kLines = 2048;
constexpr const char* kLayer = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 4,
  "workload": {"model": "attention", "sequence": 256, "hidden": 512, "heads": 8},
  "scheme": {"name": "megatron", "fused": true}})";

class Fused : public testing::Test {
 protected:
  Fused() {
    setenv("WEFT_REGIMES", "", 1);
    folder_.write("e.json", kLayer);
  }
  Json run(const std::string& options) {
    const Ran ran = weft("run e.json --no-progress --json " + options, folder_);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return ran.code == 0 ? Json::parse(ran.output) : Json();
  }
  std::string error_of(const std::string& options) {
    const Ran ran = weft("run e.json --no-progress " + options, folder_);
    EXPECT_EQ(ran.code, 65) << options;
    return ran.errors;
  }
  static double time_of(const Json& result) { return result.at("iteration").at("time_s").get<double>(); }
  static double bytes_over(const Json& result, const std::string& from, const std::string& to) {
    double bytes = 0;
    for (const Json& row : result.at("links")) {
      const std::string name = row.at("name");
      if (name.starts_with(from) && name.find("->" + to) != std::string::npos) bytes += row.at("bytes").get<double>();
    }
    return bytes;
  }
  static std::int64_t count(const Json& result, const std::string& kind) {
    return std::ranges::count_if(result.at("collectives"), [&](const Json& c) { return c.at("kind") == kind; });
  }

  TemporaryFolder folder_;
};

TEST_F(Fused, SumsOfAllRowsGoUpOnceAndComeDownOnce) {
  const Json fused = run("--set scheme.sequence_parallel=false --set all_reduce.algorithm=in_switch");
  EXPECT_EQ(count(fused, "all_reduce"), 0);  // one forward, one backward, and no gradients to reduce
  for (int g = 0; g < 4; ++g) {
    const std::string gpu = "gpu" + std::to_string(g);
    EXPECT_EQ(bytes_over(fused, gpu, ""), 2 * kLines * 128);
    EXPECT_EQ(bytes_over(fused, "switch", gpu), 2 * kLines * 128);
  }
  const Json apart = run("--set scheme.sequence_parallel=false --set scheme.fused=false");
  EXPECT_EQ(count(apart, "all_reduce"), 2);
  EXPECT_LT(time_of(fused), time_of(apart));
}

TEST_F(Fused, SumsOfOwnRowsComeDownToTheirRankOnly) {
  // Not the gathers, which a ring does: those are the same without.
  const Json fused = run("--set all_reduce.algorithm=ring --set all_reduce.protocol=Simple");
  const Json apart = run("--set all_reduce.algorithm=ring --set all_reduce.protocol=Simple --set scheme.fused=false");
  EXPECT_EQ(count(fused, "reduce_scatter"), 0);
  EXPECT_EQ(count(apart, "reduce_scatter"), 2);
  EXPECT_EQ(count(fused, "all_gather"), count(apart, "all_gather"));
  const double scattered = 2 * kLines * 128;
  constexpr double kFlags = 2048;  // of the ring's scatters
  for (int g = 0; g < 4; ++g) {
    const std::string gpu = "gpu" + std::to_string(g);
    EXPECT_NEAR(bytes_over(fused, gpu, "") - bytes_over(apart, gpu, ""), scattered - scattered * 3 / 4, kFlags);
    EXPECT_NEAR(bytes_over(fused, "switch", gpu) - bytes_over(apart, "switch", gpu), scattered / 4 - scattered * 3 / 4,
                kFlags);
  }
  EXPECT_LT(time_of(fused), time_of(apart));
}

TEST_F(Fused, SumsThatWaitForALateRankMakeRoomAndGoHome) {
  const Json result =
      run("--set scheme.sequence_parallel=false --set switch_reduce.table_bytes_per_port=256 "
          R"(--set 'network.faults=[{"link":"gpu2->switch0","factor":0.2}]')");
  EXPECT_EQ(result["status"], "ok");
  std::int64_t evictions = 0;
  for (const Json& hub : result["switches"]) evictions += hub.at("table_evictions").get<std::int64_t>();
  EXPECT_GT(evictions, 0);
  EXPECT_GT(bytes_over(result, "switch", "gpu0"), 2 * kLines * 128);
}

TEST_F(Fused, SampledIsNeverFarFromCycle) {
  for (const char* rows : {"true", "false"}) {
    const std::string set = std::string("--set scheme.sequence_parallel=") + rows;
    const Json cycle = run(set);
    const Json sampled = run(set + " --fidelity sampled");
    EXPECT_NEAR(time_of(sampled) / time_of(cycle), 1, 0.03);
    EXPECT_EQ(bytes_over(sampled, "gpu1", ""), bytes_over(cycle, "gpu1", ""));
    EXPECT_THAT(sampled["notes"], Contains(HasSubstr("by itself: kernels push sums to switches")));
  }
}

TEST_F(Fused, ThreadsDoNotShow) {
  EXPECT_EQ(without_engine(run("")).dump(), without_engine(run("--threads=2")).dump());
}

TEST_F(Fused, WhatSwitchesCannotSumIsRefused) {
  EXPECT_THAT(error_of("--set switch_reduce=null"), HasSubstr("/scheme/fused: expected false, or sums that switches"));
  EXPECT_THAT(error_of("--set switch_reduce.adders.lanes.fp16=0"), HasSubstr("no lanes for fp16"));
  EXPECT_THAT(error_of("--set switch_reduce.fan_in=2"), HasSubstr("an entry counts 2 GPUs at most, of 4"));
  EXPECT_THAT(error_of("--set switch_reduce.max_groups=3"), HasSubstr("the switches know 3 groups at most"));
  EXPECT_THAT(error_of("--set switch_reduce.order=fixed"), HasSubstr("fixed order only what is pulled"));
  EXPECT_THAT(error_of("--set scheme.name=ulysses"), HasSubstr("/scheme/fused: expected false: only megatron"));
}

TEST_F(Fused, WithoutALaneForAllTheSumsAreCollectivesAgain) {
  const Json result =
      run(R"(--set 'network.faults=[{"link":"gpu0->switch0","factor":0},{"link":"gpu1->switch1","factor":0},)"
          R"({"link":"gpu2->switch2","factor":0},{"link":"switch3->gpu3","factor":0}]')");
  EXPECT_EQ(count(result, "reduce_scatter"), 2);
  EXPECT_THAT(result["notes"], Contains(HasSubstr("Kernels are not fused with their sums: no lane to a switch works")));
  EXPECT_THAT(run(R"(--set 'network.faults=[{"link":"gpu0->switch0","factor":0}]')")["notes"],
              Not(Contains(HasSubstr("not fused"))));
}

}  // namespace
}  // namespace weft
