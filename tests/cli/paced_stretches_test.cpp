// Steps whose kernels and collectives were seen beside each other before, from outside.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPaced = "stretches with collectives were not simulated";

std::string step(double gigabytes, const char* more = "") {
  return fmt::format(R"({{"system": {{"base": "dgx-a100", "network": {{"link": {{"bandwidth_GBps": {}}}}}}}, "gpus": 4,
    "fidelity": "sampled", "workload": {{"model": "resnet50", "batch": 4, "layers": 6}},
    "all_reduce": {{"algorithm": "ring", "protocol": "Simple"}}{}}})",
                     gigabytes, more);
}

// One after the other, with one memory.
class PacedStretches : public testing::Test {
 protected:
  Json run(const std::string& config) {
    setenv("WEFT_REGIMES", (folder_.path() / "regimes.sqlite").c_str(), 1);
    folder_.write("e.json", config);
    const Ran ran = weft("run e.json --json", folder_);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  }
  static double transactions(const Json& result) { return result.at("engine").at("memory_transactions").get<double>(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(PacedStretches, AtRatesThatAreNearOrBetweenGoAsInDetail) {
  EXPECT_THAT(run(step(12.5)).at("notes").dump(), Not(HasSubstr(kPaced)));
  EXPECT_THAT(run(step(25)).at("notes").dump(), Not(HasSubstr(kPaced)));  // twice as fast: it has to be seen
  const Json paced = run(step(18));
  EXPECT_THAT(paced.at("notes").dump(), HasSubstr(kPaced));
  const Json detail = run_one(step(18), "sampled");
  EXPECT_LT(transactions(paced), 0.1 * transactions(detail));
  EXPECT_NEAR(iteration(paced, "time_s") / iteration(detail, "time_s"), 1, 0.01);
  EXPECT_NEAR(iteration(paced, "backward_slowdown") / iteration(detail, "backward_slowdown"), 1, 0.02);
  EXPECT_NEAR(iteration(paced, "communication_s") / iteration(detail, "communication_s"), 1, 0.03);
  // What moves is counted, though nothing moved.
  const Json& gpu = paced.at("gpus").at(0);
  const Json& gpu_in_detail = detail.at("gpus").at(0);
  const auto share = [](const Json& of, const Json& by) { return of.get<double>() / by.get<double>(); };
  for (const char* moved : {"hbm_read_bytes", "hbm_write_bytes"})
    EXPECT_NEAR(share(gpu.at(moved), gpu_in_detail.at(moved)), 1, 0.05) << moved;
  for (const char* by : {"compute", "communication"}) {
    const char* held = "compute_unit_seconds";
    EXPECT_NEAR(share(gpu.at(held).at(by), gpu_in_detail.at(held).at(by)), 1, 0.05) << by;
  }
  const Json& link = paced.at("links").at(0);
  EXPECT_NEAR(link.at("bytes").get<double>() / detail.at("links").at(0).at("bytes").get<double>(), 1, 0.02);
  EXPECT_GT(paced.at("slowdown_by_cause").at("compute_units").get<double>() +
                paced.at("slowdown_by_cause").at("hbm").get<double>(),
            0);
}

// At the same rate, but with blocks that come before those of kernels.
TEST_F(PacedStretches, OfOtherCollectivesAreSimulated) {
  run(step(25));
  EXPECT_THAT(run(step(24)).at("notes").dump(), HasSubstr(kPaced));
  std::string first = step(24);
  first.insert(first.find("\"algorithm\""), R"("high_priority": true, )");
  EXPECT_THAT(run(first).at("notes").dump(), Not(HasSubstr(kPaced)));
  std::string wider = step(24);  // as many blocks, but of more warps
  wider.insert(wider.find("\"network\""), R"("collectives": {"ring": {"threads": 640}}, )");
  EXPECT_THAT(run(wider).at("notes").dump(), Not(HasSubstr(kPaced)));
}

TEST_F(PacedStretches, OfLaterIterationsGoOn) {
  run(step(25));
  const Json paced = run(step(24, R"(, "iterations": 3)"));
  EXPECT_THAT(paced.at("notes").dump(), HasSubstr(kPaced));
  const Json detail = run_one(step(24, R"(, "iterations": 3)"), "sampled");
  const auto time = [](const Json& result, int of) {
    return result.at("iteration").at("per_iteration").at(of).get<double>();
  };
  for (const int of : {0, 1, 2}) EXPECT_NEAR(time(paced, of) / time(detail, of), 1, 0.015) << of;
}

}  // namespace
}  // namespace weft
