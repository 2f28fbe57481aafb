// Collectives with more blocks than have places: what is told, in both fidelities.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;

std::string on_few_units(const std::string& all_reduce) {
  return fmt::format(R"({{"system": {{"base": "mi300x", "gpu": {{"compute_units": 24}}}}, "gpus": 8,
    "workload": {{"collective": "all_reduce", "bytes": 1048576}}, "all_reduce": {}}})",
                     all_reduce);
}

TEST(Standstill, BlocksThatHaveNoPlaceAreTold) {
  const auto [cycle, sampled] = run_both(on_few_units(R"({"algorithm": "direct", "channels": 64})"));
  for (const Json& result : {cycle, sampled}) {
    EXPECT_EQ(result.at("status"), "deadlock");
    EXPECT_THAT(result.at("notes").dump(), HasSubstr("40 of the 64 thread blocks of collective all_reduce find no "
                                                     "place on the compute units of GPU 0"));
  }
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("in detail although asked for samples"));
}

TEST(Standstill, OfWhatTheLibraryChoosesEveryBlockHasAUnit) {
  const auto [cycle, sampled] = run_both(on_few_units(R"({"algorithm": "auto"})"));
  for (const Json& result : {cycle, sampled}) {
    EXPECT_EQ(result.at("status"), "ok");
    EXPECT_EQ(result.at("collectives").at(0).at("algorithm"), "direct");
    EXPECT_EQ(result.at("collectives").at(0).at("channels"), 24);
  }
}

}  // namespace
}  // namespace weft
