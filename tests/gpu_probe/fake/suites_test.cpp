// The probe's suites from end to end on a GPU that is not there: what they measure, write and go on with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "bench/gpu/suites/session.h"
#include "bench/gpu/suites/victim_run.h"
#include "tests/gpu_probe/fake/fake_clock.h"

namespace weft::gpu_probe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class GpuProbeSuites : public testing::Test {
 protected:
  GpuProbeSuites() : folder_(fs::temp_directory_path() / ("weft_gpu_suites_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    fake_gpus = 1;
  }
  ~GpuProbeSuites() override { fs::remove_all(folder_); }

  json measure(const std::vector<std::string>& arguments, double budget_s = 600) {
    std::vector<const char*> argv{"weft_gpu_probe"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    int code = 0;
    Options options = *parse_options(static_cast<int>(argv.size()), argv.data(), code);
    ResultFile results(folder_ / "out.json", options.resume);
    Gpu gpu({});
    const volatile std::sig_atomic_t interrupted = 0;
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(1000 * budget_s));
    Session session{options, gpu, results, deadline, interrupted};
    results.set("machine", gpu.describe());
    for (const Suite suite : options.suites) {
      if (suite == Suite::pairs) run_pairs(session);
      if (suite == Suite::units) run_units(session);
      if (suite == Suite::drain) run_drain(session);
      if (suite == Suite::machine) run_machine(session);
      if (suite == Suite::cache) run_cache(session);
      if (suite == Suite::launch) run_launch(session);
    }
    results.save();
    std::ifstream in(folder_ / "out.json");
    return json::parse(in);
  }

  fs::path folder_;
};

TEST_F(GpuProbeSuites, PairsHoldWhatTheSchemaSays) {
  const json out = measure({"--suite", "pairs", "--victim", "add_fp32|blocks_1", "--aggressor", "_16"});
  EXPECT_EQ(out["schema"], "weft-overlap/1");
  EXPECT_EQ(out["machine"]["units"], 132);
  ASSERT_FALSE(out["pairs"].empty());
  std::set<json> victims, aggressors;
  for (const json& victim : out["victims"]) {
    victims.insert(victim.at("name"));
    EXPECT_GT(victim.at("alone_us").at("median"), 0);
    EXPECT_FALSE(victim.at("operators").empty());
  }
  for (const json& aggressor : out["aggressors"]) {
    aggressors.insert(aggressor.at("name"));
    EXPECT_TRUE(aggressor.at("alone").contains("written_GBps"));
    EXPECT_EQ(aggressor.at("registers"), kRegistersAsked);
  }
  for (const json& pair : out["pairs"]) {
    EXPECT_TRUE(victims.contains(pair.at("victim")));
    EXPECT_TRUE(aggressors.contains(pair.at("aggressor")));
    EXPECT_GT(pair.at("beside_us").at("median"), pair.at("alone_us").at("median"));
    EXPECT_EQ(pair.at("aggressor_units").size(), 16u);
    EXPECT_DOUBLE_EQ(pair.at("sm_clock_MHz"), 1800);
    EXPECT_GT(pair.at("aggressor_written_GBps"), 0);
  }
}

TEST_F(GpuProbeSuites, PairsGoOnWhereTheyEnded) {
  const std::vector<std::string> arguments{"--suite", "pairs", "--victim", "add_bf16", "--aggressor", "spin"};
  EXPECT_TRUE(measure(arguments, 0)["pairs"].empty());
  const json all = measure(arguments);
  auto again = arguments;
  again.emplace_back("--resume");
  const json resumed = measure(again, 0);
  EXPECT_FALSE(all["pairs"].empty());
  EXPECT_EQ(resumed["pairs"], all["pairs"]);
}

TEST_F(GpuProbeSuites, VictimsWithoutTheirLibraryAreLeftOutWithAReason) {
  const json out = measure({"--suite", "pairs", "--victim", "gemm_bf16_4096$", "--aggressor", "spin_16$"});
  EXPECT_TRUE(out["pairs"].empty());
  ASSERT_EQ(out["left_out"].size(), 1u);
  EXPECT_EQ(out["left_out"][0]["victim"], "gemm_bf16_4096");
}

TEST_F(GpuProbeSuites, UnitsTellHowManyBlocksFitAtOnce) {
  for (const json& item : measure({"--suite", "units"})["units"]) {
    EXPECT_EQ(
        item.at("most_blocks_at_once").get<int>(),
        (132 - item.at("resident_blocks").get<int>()) / item.at("cluster").get<int>() * item.at("cluster").get<int>());
    ASSERT_TRUE(item.contains("further_units_lost"));
    for (const json& lost : item.at("further_units_lost")) EXPECT_TRUE(lost.at("units").empty());
  }
}

TEST_F(GpuProbeSuites, DrainTimesEachOperationBesideEachAggressor) {
  const json out = measure({"--suite", "drain"});
  EXPECT_EQ(out["drain"].size(), 7u * 38);
  for (const json& item : out["drain"]) {
    EXPECT_EQ(item.at("event_us").at("n"), 50);
    if (item.at("operation") == "kernel") {
      EXPECT_DOUBLE_EQ(item.at("inside_us").at("median"), 2);
    }
  }
}

TEST_F(GpuProbeSuites, MachineHasAllItsParts) {
  const json memory = measure({"--suite", "machine"})["memory"];
  for (const char* part : {"launch", "bandwidth", "line_latency", "mixes", "pieces", "host", "latency"})
    EXPECT_TRUE(memory.contains(part)) << part;
  EXPECT_DOUBLE_EQ(memory["latency"][0]["ns"], 300);
  EXPECT_DOUBLE_EQ(memory["host"]["latency_ns"], 900);
  EXPECT_DOUBLE_EQ(memory["host"]["round_trip_ns"], 1800);
  for (const json& item : memory["mixes"]) {
    EXPECT_EQ(item.value("units", json::array()).size(),
              item.at("cluster") > 1 ? item.at("blocks").get<std::size_t>() : 0);
  }
}

TEST_F(GpuProbeSuites, CacheHasAllItsParts) {
  const json cache = measure({"--suite", "cache"})["cache"];
  for (const json& item : cache.at("same_lines")) {
    EXPECT_EQ(item.at("blocks").get<int>() % item.at("readers").get<int>(), 0);
    EXPECT_EQ(item.at("blocks").get<int>() % item.at("cluster").get<int>(), 0);
  }
  std::set<std::string> operations;
  for (const json& item : cache.at("footprints")) {
    operations.insert(item.at("operation"));
    EXPECT_GT(item.at("GBps"), 0);
  }
  EXPECT_EQ(operations, (std::set<std::string>{"read", "write"}));
  EXPECT_EQ(cache.at("passed_on").size(), 2u * 3 * 12);
  for (const json& item : cache.at("adds")) {
    EXPECT_GT(item.at("us").at("median"), 0);
    EXPECT_EQ(item.contains("aggressor_written_GBps"), !item.at("aggressor").is_null());
  }
}

TEST_F(GpuProbeSuites, VictimsOfSlowLibrariesAreLaunchedByGraphs) {
  struct Counted : Work {
    explicit Counted(int& launches) : count(launches) {}
    void launch(cudaStream_t, unsigned) override { ++count; }
    int& count;
  };
  int launches = 0;
  std::vector<std::unique_ptr<Work>> works;
  works.push_back(std::make_unique<Counted>(launches));
  VictimRun run(std::move(works), 3);
  run.launch(nullptr);
  EXPECT_EQ(launches, 1);
  EXPECT_TRUE(run.use_graphs(nullptr));
  run.launch(nullptr);
  EXPECT_TRUE(run.launches_graphs());
  EXPECT_EQ(launches, 1 + 3) << "each set of buffers is captured once";
}

TEST_F(GpuProbeSuites, NoGpuIsSaid) {
  fake_gpus = 0;
  EXPECT_THROW(Gpu({}), NoGpu);
}

}  // namespace
}  // namespace weft::gpu_probe
