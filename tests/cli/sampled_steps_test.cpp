// What long collectives leave out before they repeat whole loops, from outside.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/json_reader.h"
#include "tests/cli/both_fidelities.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

struct LongCollective {
  const char* system;
  const char* algorithm;
  std::int64_t bytes;
  double us;       // with nothing left out
  double skipped;  // at least
};

class SampledSteps : public testing::TestWithParam<LongCollective> {};

TEST_P(SampledSteps, AreLeftOutForTheMostPart) {
  const LongCollective& of = GetParam();
  const TemporaryFolder folder;
  setenv("WEFT_REGIMES", (folder.path() / "regimes.sqlite").c_str(), 1);
  folder.write("e.json", fmt::format(R"({{"system": "{}", "gpus": 8, "fidelity": "sampled",
    "workload": {{"collective": "all_reduce", "bytes": {}}},
    "all_reduce": {{"algorithm": "{}", "protocol": "Simple"}}}})",
                                     of.system, of.bytes, of.algorithm));
  const Ran ran = weft("run e.json --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "result");
  EXPECT_NEAR(result.at("iteration").at("time_s").get<double>() * 1e6, of.us, 0.02 * of.us);
  EXPECT_GT(result.at("engine").at("skipped_fraction").get<double>(), of.skipped);
}

// Two thirds of a loop of a ring, of 24 blocks that drift apart: nothing repeats but steps, in runs of twelve (by
// rounds alone 0.36). And slots that are filled a fifth faster than they are summed until all eight are full, which is
// a third of a message of 512 MiB; who fills them is through eight slots before the others. The first and the last are
// times in `cycle`, the second that of lines as coarse.
INSTANTIATE_TEST_SUITE_P(All, SampledSteps,
                         testing::Values(LongCollective{"dgx-a100", "ring", std::int64_t{256} << 20, 2276, 0.5},
                                         LongCollective{"hgx-h100", "in_switch", std::int64_t{512} << 20, 2130, 0.45},
                                         LongCollective{"hgx-h100", "in_switch", std::int64_t{1} << 30, 3870, 0.55}),
                         [](const auto& param) {
                           return fmt::format("{}_{}MiB", param.param.algorithm, param.param.bytes >> 20);
                         });

// Where all GPUs are simulated, twice as many bytes in lines twice as coarse are as many transactions. The time is that
// of `cycle`.
TEST(SampledLines, AreCoarserTheLongerTheMessage) {
  const auto scatter = [](int mib) {
    const TemporaryFolder folder;
    setenv("WEFT_REGIMES", "", 1);
    folder.write("e.json", fmt::format(R"({{"system": "dgx1-v100", "gpus": 8, "fidelity": "sampled",
      "workload": {{"collective": "scatter", "bytes": {}}}}})",
                                       std::int64_t{mib} << 20));
    const Ran ran = weft("run e.json --json", folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  };
  const Json half = scatter(512);
  const Json whole = scatter(1024);
  const auto transactions = [](const Json& result) {
    return result.at("engine").at("memory_transactions").get<double>();
  };
  EXPECT_NEAR(transactions(whole) / transactions(half), 1, 0.1);
  EXPECT_NEAR(whole.at("iteration").at("time_s").get<double>(), 9.102e-3, 0.02 * 9.102e-3);
}

// Blocks that come to the root by several links at once are written back early: what is left out moves as much as was
// seen, not what an L2 makes of one block after the other (a sixth less).
TEST(SampledHbm, MovesWhatWasSeenWhereTheL2IsFull) {
  const Both both = run_both(R"({"system": {"base": "hgx-h100", "gpu": {"l2": {"bytes": 13107200}}}, "gpus": 4,
    "workload": {"collective": "gather", "bytes": 67108864}})");
  for (const char* moved : {"hbm_read_bytes", "hbm_write_bytes"}) {
    const auto of = [&](const Json& result) { return result.at("gpus").at(0).at(moved).get<double>(); };
    EXPECT_NEAR(of(both.sampled) / of(both.cycle), 1, 0.03) << moved;
  }
  EXPECT_GT(both.sampled.at("engine").at("skipped_fraction").get<double>(), 0.25);
}

// Three blocks of FP32 share a unit, of which two keep its pipes busy and end together: two of the last few blocks come
// to one unit, seven in all, where others have five. What is left out has to keep them so, also beside thread blocks of
// a gather.
TEST(SampledProducts, KeepWhoGoesFirstOnAUnit) {
  const Both both = run_both(R"({"system": "dgx-a100", "gpus": 4, "scheme": {"name": "single_sample"}, "workload":
    {"model": "distributed_product", "product": "nt", "rows": 6144, "columns": 768, "offset": 768}})");
  EXPECT_NEAR(iteration(both.sampled, "time_s") / iteration(both.cycle, "time_s"), 1, 0.01);
  EXPECT_GT(both.sampled.at("engine").at("skipped_fraction").get<double>(), 0.3);
}

// While a short gather is in a fence or polls, it has no lines under way and yet waits for nobody: what runs beside it
// is not left out, or the gather would end as much later.
TEST(SampledProducts, GoOnAtTheirPaceWhileAGatherIsInAFence) {
  const Both both = run_both(R"({"system": "mi300x", "gpus": 4, "scheme": {"name": "single_sample"}, "workload":
    {"model": "distributed_product", "product": "nt", "rows": 3584, "columns": 1000, "offset": 128}})");
  EXPECT_NEAR(iteration(both.sampled, "time_s") / iteration(both.cycle, "time_s"), 1, 0.02);
}

}  // namespace
}  // namespace weft
