// Links to switches that are out: what still goes by the switch, what falls back to a ring, and what cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kBase = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 8,
  "workload": {"collective": "all_reduce", "bytes": 65536},
  "all_reduce": {"algorithm": "in_switch", "protocol": "Simple"}})";
const std::string kValues = " --set functional={}";

// "0>1 3<2": the links from GPU 0 to switch 1 and from switch 2 to GPU 3.
std::string out(const std::string& links) {
  std::string faults;
  std::istringstream words(links);
  for (std::string link; words >> link;) {
    const std::string gpu = link.substr(0, 1);
    const std::string plane = link.substr(2);
    const std::string name = link[1] == '>' ? "gpu" + gpu + "->switch" + plane : "switch" + plane + "->gpu" + gpu;
    faults += (faults.empty() ? "" : ",") + (R"({"link":")" + name + R"(","factor":0})");
  }
  return " --set 'network.faults=[" + faults + "]'";
}

Json result_of(const std::string& options) {
  setenv("WEFT_REGIMES", "", 1);  // what other runs have left says nothing of how GPUs were simulated
  const TemporaryFolder folder;
  folder.write("f.json", kBase);
  const Ran run = weft("run f.json --no-progress --json" + options, folder);
  EXPECT_EQ(run.code, 0) << run.errors;
  return run.code == 0 ? Json::parse(run.output) : Json();
}

std::int64_t bytes_over(const Json& result, const std::string& link) {
  std::int64_t bytes = 0;
  for (const Json& row : result.at("links")) {
    if (row.at("name").get<std::string>().starts_with(link)) bytes += row.at("bytes").get<std::int64_t>();
  }
  return bytes;
}

double time_of(const Json& result) { return result.at("iteration").at("time_s").get<double>(); }

TEST(SwitchFaults, MulticastsTakeWhatWorksForAllOfTheirGroup) {
  const Json result = result_of(kValues + " --set workload.groups=[[0,1,2,3],[4,5,6,7]]" + out("1>0"));
  for (const Json& collective : result["collectives"]) EXPECT_EQ(collective["algorithm"], "in_switch");
  EXPECT_THAT(result["notes"], IsEmpty());
  EXPECT_EQ(result["functional"]["wrong"], 0);
  for (const char* gpu : {"gpu0", "gpu1", "gpu2", "gpu3"}) {
    EXPECT_EQ(bytes_over(result, std::string(gpu) + "->switch0"), 0) << gpu;
    EXPECT_EQ(bytes_over(result, std::string("switch0->") + gpu), 0) << gpu;
    EXPECT_GT(bytes_over(result, std::string(gpu) + "->switch1"), 0) << gpu;
  }
  EXPECT_GT(bytes_over(result, "gpu4->switch0"), 0);
}

TEST(SwitchFaults, PacketsOfAPairTakeWhatWorksForBoth) {
  const Json result = result_of(kValues + " --set all_reduce.algorithm=ring" + out("1<0 3>2"));
  EXPECT_EQ(result["functional"]["wrong"], 0);
  for (const char* link : {"gpu1->switch0", "switch0->gpu1", "gpu3->switch2", "switch2->gpu3"}) {
    EXPECT_EQ(bytes_over(result, link), 0) << link;
  }
  // What goes to GPUs 1 and 3, but for flags to those before; and what has nothing to do with them.
  for (const char* link : {"gpu0->switch0", "switch0->gpu2", "gpu2->switch2", "switch2->gpu4"}) {
    EXPECT_LT(bytes_over(result, link), 4096) << link;
  }
  for (const char* link : {"gpu2->switch0", "gpu5->switch2", "gpu0->switch2", "gpu7->switch0"}) {
    EXPECT_GT(bytes_over(result, link), 16384) << link;
  }
}

TEST(SwitchFaults, WithoutALaneForAllACollectiveFallsBackAndSaysSo) {
  for (const char* what : {"", " --set workload.collective=reduce_scatter", " --set all_reduce.registered=true"}) {
    SCOPED_TRACE(what);
    const Json result = result_of(kValues + what + out("0>0 1<1 2>2 3>3"));
    EXPECT_EQ(result["collectives"][0]["algorithm"], "ring");
    EXPECT_EQ(result["functional"]["wrong"], 0);
    const std::string kind = result["collectives"][0]["kind"];
    EXPECT_THAT(result["notes"],
                Contains("1 " + kind +
                         " by ring instead of in the switch: no lane to a switch works for all of 8 GPUs "
                         "(gpu0->switch0, switch1->gpu1, gpu2->switch2 and 1 more out)."));
  }
}

TEST(SwitchFaults, SoDoesWhatTheTunerWouldPutIntoTheSwitch) {
  const std::string automatic = " --set all_reduce.algorithm=auto --set all_reduce.protocol=auto --set workload.bytes=";
  const std::string faults = out("0>0 1<1 2>2 3>3");
  const Json large = result_of(automatic + "4194304" + faults);
  EXPECT_EQ(large["collectives"][0]["algorithm"], "ring");
  EXPECT_THAT(large["notes"], Contains(HasSubstr("instead of in the switch")));
  const Json small = result_of(automatic + "4096" + faults);  // a ring in any case
  EXPECT_THAT(small["notes"], Not(Contains(HasSubstr("instead of in the switch"))));
}

TEST(SwitchFaults, AGroupWithoutTheFailedPortsKeepsTheSwitch) {
  const Json result = result_of(kValues + " --set workload.groups=[[0,1,2,3],[4,5,6,7]]" + out("0>0 1<1 2>2 3>3"));
  EXPECT_EQ(result["collectives"][0]["algorithm"], "ring");
  EXPECT_EQ(result["collectives"][1]["algorithm"], "in_switch");
  EXPECT_EQ(result["functional"]["wrong"], 0);
  EXPECT_EQ(result["notes"].size(), 1U);
}

TEST(SwitchFaults, EnginesFallBackToo) {
  const Json result = result_of(
      " --set all_reduce.mover=endpoint_engine --set all_reduce.protocol=auto"
      "" +
      out("0>0 1<1 2>2 3>3"));
  EXPECT_EQ(result["collectives"][0]["algorithm"], "ring");
  EXPECT_THAT(result["notes"], Contains(HasSubstr("instead of in the switch")));
}

TEST(SwitchFaults, SampledDoesAsCycleDoes) {
  for (const char* faults : {"0>0", "0>0 1<1 2>2 3>3"}) {
    SCOPED_TRACE(faults);
    const std::string set = " --set workload.bytes=2097152" + out(faults);
    const Json cycle = result_of(set);
    const Json sampled = result_of(set + " --fidelity sampled");
    EXPECT_NEAR(time_of(sampled) / time_of(cycle), 1, 0.03);
    EXPECT_EQ(sampled["collectives"][0]["algorithm"], cycle["collectives"][0]["algorithm"]);
    EXPECT_THAT(sampled["notes"], Contains(HasSubstr("by itself: links are faulty")));
    EXPECT_EQ(bytes_over(sampled, "gpu0->switch0"), 0);
  }
}

TEST(SwitchFaults, GpusThatCannotReachEachOtherAreAnError) {
  const TemporaryFolder folder;
  folder.write("f.json", kBase);
  const auto error_of = [&](const std::string& links) {
    const Ran run = weft("run f.json --no-progress" + out(links), folder);
    EXPECT_EQ(run.code, 65);
    return run.errors;
  };
  EXPECT_THAT(
      error_of("2>0 2>1 2<2 2<3"),
      HasSubstr("/network/faults: expected a network in which all GPUs reach each other, got no lane that works "
                "for gpu2: gpu2->switch0, gpu2->switch1, switch2->gpu2 and 1 more out"));
  EXPECT_THAT(error_of("0>0 0>1 1<2 1<3"), HasSubstr("got no lane that works for gpu0 and gpu1: gpu0->switch0,"));
}

}  // namespace
}  // namespace weft
