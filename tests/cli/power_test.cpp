// "gpu.power", from the configuration to the result.
#include <gmock/gmock.h>

#include "cli/config/run_config.h"
#include "sim/atomic_file.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Json power(double limit_W) {
  return {{"limit_W", limit_W},
          {"idle_W", 10},
          {"unit_W", 0.3},
          {"slots_W", {{"issue", 5}, {"tensor", 40}, {"fp32", 30}, {"fp64", 30}, {"sfu", 10}}},
          {"l2_pJ_per_byte", 15},
          {"hbm_pJ_per_byte", 40},
          {"link_pJ_per_byte", 3000},  // far more than real ones: communication is what passes the limit
          {"lowest_clock_MHz", 210},
          {"clock_step_MHz", 15},
          {"lowest_voltage", 0.7},
          {"window_ns", 10000}};
}

// Layers whose gradients are summed while they run backward.
Json layers(const Json& of_power) {
  Json document{
      {"system", {{"base", "dgx-a100"}, {"gpu", {{"compute_units", 24}}}}},
      {"gpus", 2},
      {"workload",
       {{"model", "attention"}, {"sequence", 512}, {"hidden", 512}, {"heads", 8}, {"batch", 2}, {"layers", 3}}}};
  if (!of_power.is_null()) document["system"]["gpu"]["power"] = of_power;
  return document;
}

std::string refusal(const Json& of_power) {
  try {
    static_cast<void>(read_run_config(layers(of_power), "power.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PowerConfig, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal(power(400)), "");
  EXPECT_THAT(refusal(power(5)), HasSubstr("gpu/power/idle_W: expected less than limit_W, 5, got 10"));
  Json other = power(400);
  other["lowest_clock_MHz"] = 2000;
  EXPECT_THAT(refusal(other), HasSubstr("gpu/power/lowest_clock_MHz: expected at most the GPU's clock_MHz, 1410, got "
                                        "2000"));
  other = power(400);
  other["clock_step_MHz"] = 0.01;
  EXPECT_THAT(refusal(other), HasSubstr("gpu/power/clock_step_MHz: expected at least a ten-thousandth"));
  other = power(400);
  other.erase("slots_W");
  EXPECT_THAT(refusal(other), HasSubstr("gpu/power/slots_W"));
}

TEST(PowerConfig, IsPartOfTheResolvedConfigurationAndReadsBack) {
  const RunConfig config = read_run_config(layers(power(400)), "power.json");
  const RunConfig again = read_run_config(config.resolved, "resolved.json");
  EXPECT_EQ(again.resolved, config.resolved);
  ASSERT_TRUE(again.system.gpu.power);
  EXPECT_EQ(again.system.gpu.power->clock_step, megahertz(15));
  EXPECT_FALSE(read_run_config(layers(nullptr), "none.json").system.gpu.power);
}

Json run(const Json& document, const TemporaryFolder& folder, const std::string& more = "") {
  write_file_atomically(folder.path() / "power.json", document.dump());
  const Ran ran = weft("run power.json -o out --json " + more, folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return Json::parse(ran.output);
}

double iteration(const Json& result, const char* key) { return result.at("iteration").at(key).get<double>(); }

TEST(PowerOfARun, CommunicationLowersTheClockOfWhatRunsBesideIt) {
  const TemporaryFolder folder;
  const Json without = run(layers(nullptr), folder);
  EXPECT_FALSE(without.at("gpus").at(0).contains("power"));
  const Json enough = run(layers(power(1000)), folder);
  EXPECT_EQ(enough.at("iteration"), without.at("iteration"));
  EXPECT_EQ(enough.at("gpus").at(0).at("power").at("lowest_clock_MHz"), 1410);
  EXPECT_GT(enough.at("gpus").at(0).at("power").at("energy_J"), 10 * iteration(enough, "time_s"));

  const double limit = 70;
  const Json less = run(layers(power(limit)), folder, "--fidelity sampled");
  EXPECT_THAT(less.at("notes").dump(), HasSubstr("Simulated in detail although asked for samples: the clock follows"));
  const Json& of_gpu = less.at("gpus").at(0).at("power");
  EXPECT_LT(of_gpu.at("lowest_clock_MHz"), 1200);
  EXPECT_GT(of_gpu.at("mean_clock_MHz"), of_gpu.at("lowest_clock_MHz"));
  EXPECT_GT(iteration(less, "time_s"), 1.01 * iteration(without, "time_s"));
  EXPECT_GT(iteration(less, "backward_slowdown"), 1.01 * iteration(without, "backward_slowdown"));
  EXPECT_GT(less.at("slowdown_by_cause").at("compute_units"), without.at("slowdown_by_cause").at("compute_units"));

  const std::string counters = read_file(folder.path() / "out" / "counters.csv");
  EXPECT_THAT(counters, HasSubstr("power,power,W,0,70,1e-05,"));
  EXPECT_THAT(counters, HasSubstr("clock,clock,MHz,1,1410,1e-05,"));
  EXPECT_EQ(weft("report out", folder).code, 0);
  const Ran said = weft("run power.json --no-progress", folder);
  EXPECT_THAT(said.output, HasSubstr("J a GPU and iteration; clock"));
}

}  // namespace
}  // namespace weft
