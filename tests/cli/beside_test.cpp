// "beside": blocks that stand on the GPUs next to the workload, from the configuration to the result.
#include "cli/run/beside.h"

#include <gmock/gmock.h>

#include "cli/config/run_config.h"
#include "sim/atomic_file.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

Json attention_beside(const Json& beside) {
  return {{"system", "hgx-h200"},
          {"gpus", 1},
          {"workload", {{"model", "attention"}, {"sequence", 256}, {"hidden", 256}, {"heads", 4}}},
          {"beside", beside}};
}
RunConfig config_of(const Json& beside) { return read_run_config(attention_beside(beside), "beside.json"); }

std::string refusal(const Json& beside) {
  try {
    static_cast<void>(config_of(beside));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BesideConfig, SaysWhatDoesNotFit) {
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal({{{"work", "spin"}, {"threads", 1024}, {"registers", 128}}}), HasSubstr("/beside/0/threads"));
  EXPECT_THAT(
      refusal({{{"work", "spin"}, {"blocks", 16}}, {{"work", "spin"}, {"blocks", 117}}}),
      HasSubstr("/beside/1/blocks: expected as many as have room at once on H200-SXM-141GB beside those before, "
                "116, got 117"));
  EXPECT_THAT(refusal({{{"work", "copy"}, {"buffer_MiB", 0.25}}}), HasSubstr("/beside/0/buffer_MiB"));
  EXPECT_THAT(refusal({{{"work", "copy"}, {"rate_GBps", 0}}}), HasSubstr("/beside/0/rate_GBps"));
  EXPECT_THAT(refusal({{{"work", "move"}}}), HasSubstr(R"(expected one of "spin", "copy", "reduce")"));
  EXPECT_EQ(refusal({{{"work", "spin"}, {"blocks", 132}}}), "");
}

TEST(BesideConfig, IsPartOfTheResolvedConfigurationAndReadsBack) {
  const RunConfig config = config_of({{{"work", "copy"}, {"rate_GBps", 12.5}}, {{"work", "spin"}, {"blocks", 2}}});
  const RunConfig again = read_run_config(config.resolved, "resolved.json");
  EXPECT_EQ(again.resolved, config.resolved);
  ASSERT_EQ(again.beside.size(), 2U);
  EXPECT_EQ(again.beside[0].rate, gigabytes_per_second(12.5));
  EXPECT_EQ(again.beside[1].rate, std::nullopt);
}

// One simulation a process: that of SystemC.
Json run(const Json& document) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "beside.json", document.dump());
  const Ran ran = weft("run beside.json --json", folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return Json::parse(ran.output);
}

TEST(Beside, TimesAloneAreWithoutItAndItsMemoryCounts) {
  const Json alone = run(attention_beside(Json::array()));
  const Json beside = run(attention_beside({{{"work", "copy"}, {"blocks", 32}}}));
  const double isolated_s = alone["iteration"]["backward_isolated_s"];
  EXPECT_NEAR(beside["iteration"]["backward_isolated_s"].get<double>(), isolated_s, 1e-9 * isolated_s);
  EXPECT_GT(beside["iteration"]["backward_slowdown"], 1.02);
  const Json& gpu = beside["gpus"][0];
  EXPECT_EQ(gpu["peak_memory_bytes"].get<std::int64_t>() - alone["gpus"][0]["peak_memory_bytes"].get<std::int64_t>(),
            std::int64_t{512} << 20);
  ASSERT_EQ(gpu["beside"].size(), 1U);
  EXPECT_EQ(gpu["beside"][0]["work"], "copy");
  EXPECT_GT(gpu["beside"][0]["stored_GBps"], 100);
  EXPECT_GT(gpu["hbm_communication_bytes"], gpu["beside"][0]["loaded_bytes"]);  // the buffer is larger than the L2
  EXPECT_FALSE(alone["gpus"][0].contains("beside"));
}

TEST(Beside, BlocksThatOnlyStandThereCostUnitsAndNothingElse) {
  const Json result = run(attention_beside({{{"work", "spin"}, {"blocks", 128}, {"shared_memory_bytes", 200000}}}));
  EXPECT_GT(result["iteration"]["backward_slowdown"], 1.1);
  EXPECT_EQ(result["slowdown_by_cause"]["hbm"], 0);
  EXPECT_EQ(result["slowdown_by_cause"]["cache"], 0);
  EXPECT_GT(result["slowdown_by_cause"]["compute_units"], 0);
}

TEST(Beside, StandsOnEveryGpuNextToCollectivesToo) {
  Json document = attention_beside({{{"work", "reduce"}, {"blocks", 8}, {"rate_GBps", 50}}});
  document["gpus"] = 2;
  document["workload"] = {{"collective", "all_reduce"}, {"bytes", 1 << 20}};
  const Json result = run(document);
  ASSERT_EQ(result["gpus"].size(), 2U);
  for (const Json& gpu : result["gpus"]) {
    ASSERT_EQ(gpu["beside"].size(), 1U);
    const Json& row = gpu["beside"][0];
    EXPECT_NEAR(row["stored_GBps"].get<double>(), 50, 3);
    EXPECT_EQ(row["loaded_bytes"].get<std::int64_t>(), 2 * row["stored_bytes"].get<std::int64_t>());
  }
}

TEST(Beside, IsSimulatedInDetailWhereSamplesAreAskedFor) {
  Json document = attention_beside({{{"work", "spin"}}});
  document["fidelity"] = "sampled";
  EXPECT_THAT(run(document)["notes"].dump(), ::testing::HasSubstr("blocks stand beside the workload"));
}

}  // namespace
}  // namespace weft
