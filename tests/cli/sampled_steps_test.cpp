// What long collectives leave out before they repeat whole loops, from outside.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

struct LongCollective {
  const char* system;
  const char* algorithm;
  std::int64_t bytes;
  double us;  // with nothing left out
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
  EXPECT_GT(result.at("engine").at("skipped_fraction").get<double>(), 0.5);
}

// Two thirds of a loop of a ring, of 24 blocks that drift apart: nothing repeats but steps, in runs of twelve (by
// rounds alone 0.36). And slots that are filled a fifth faster than they are summed until all eight are full, which is
// a third of this message. The first is the time in `cycle`, the second that of lines as coarse.
INSTANTIATE_TEST_SUITE_P(All, SampledSteps,
                         testing::Values(LongCollective{"dgx-a100", "ring", std::int64_t{256} << 20, 2276},
                                         LongCollective{"hgx-h100", "in_switch", std::int64_t{512} << 20, 2130}),
                         [](const auto& param) { return std::string(param.param.algorithm); });

}  // namespace
}  // namespace weft
