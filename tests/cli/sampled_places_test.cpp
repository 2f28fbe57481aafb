// What of a program in samples one GPU does for others, where they are not alike in all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/programs.h"
#include "cli/run_config.h"
#include "cli/sampled/program_likeness.h"
#include "cli/sampled/symmetry.h"
#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;

RunConfig config_of(const std::string& text) { return read_run_config(parse_json(text, "test"), "test.json"); }

std::vector<Program> programs_of(const RunConfig& config) {
  std::vector<std::string> notes;
  return make_programs(config, notes);
}

constexpr const char* kProducts = R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 4,
  "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 4},
  "scheme": {"name": "single_sample"}, "all_reduce": {"algorithm": "ring", "channels": 4}})";

TEST(ProgramLikeness, IsOfOperationsWhateverLiesWhere) {
  std::vector<Program> programs = programs_of(config_of(kProducts));
  EXPECT_EQ(compare_programs(programs).why_not, "");
  EXPECT_TRUE(compare_programs(programs).at_other_addresses);
  EXPECT_FALSE(compare_programs({programs[0], programs[0]}).at_other_addresses);
  Program other = programs[0];
  for (ProgramOp& op : other.ops.edit()) {
    if (op.kind == ProgramOpKind::kernel && !op.kernel.writes.empty()) op.kernel.writes.front().bytes_per_block += 128;
  }
  EXPECT_THAT(compare_programs({programs[0], other}).why_not, HasSubstr("of GPU 1 is not that of GPU 0"));
}

// In place or not is more than an address.
TEST(ProgramLikeness, CollectivesInPlaceAreNotThoseOfTwoBuffers) {
  const std::vector<Program> programs = programs_of(
      config_of(R"({"system": "dgx-a100", "gpus": 2, "workload": {"collective": "all_reduce", "bytes": 4096}})"));
  Program other = programs[0];
  other.ops.edit().front().collective.receive_address += 4096;
  EXPECT_NE(compare_programs({programs[0], other}).why_not, "");
}

TEST(SampledPlaces, OneGpuStandsForAllThatKeepDifferentParts) {
  const TemporaryFolder folder;
  folder.write("e.json", kProducts);
  const auto run = [&](const char* fidelity) {
    const Ran ran = weft(std::string("run e.json --json --fidelity ") + fidelity, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  };
  const Json cycle = run("cycle");
  const Json sampled = run("sampled");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 4"));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("in other buffers than GPU 0"));
  const auto seconds = [](const Json& result) { return result.at("iteration").at("time_s").get<double>(); };
  EXPECT_NEAR(seconds(sampled) / seconds(cycle), 1, 0.04);
}

// A node of eight stands for others where all pairs meet, as long as nothing else needs more.
TEST(SampledPlaces, ANodeStandsForOthersOfAllPairs) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": {"base": "hgx-h100-cluster", "gpu": {"compute_units": 24}}, "gpus": 16,
    "workload": {"collective": "all_to_all", "bytes": 1048576}})");
  const auto run = [&](const char* fidelity) {
    const Ran ran = weft(std::string("run e.json --json --fidelity ") + fidelity, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  };
  const Json cycle = run("cycle");
  const Json sampled = run("sampled");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("8 GPUs stand for all 16"));
  const auto end = [](const Json& result) { return result.at("collectives").at(0).at("end_s").get<double>(); };
  EXPECT_NEAR(end(sampled) / end(cycle), 1, 0.04);
  EXPECT_GT(sampled.at("engine").at("sampling_error_estimate").get<double>(), 0.03);
}

// A shift crosses to the next node by one NIC, so a whole node stands for all; the sum of gradients alone needs one.
TEST(SampledPlaces, ACollectiveByItselfIsFoldedByItself) {
  const RunConfig config = config_of(R"({"system": "hgx-h100-cluster", "gpus": 16,
    "workload": {"model": "attention", "sequence": 1024, "hidden": 512, "heads": 8, "causal": true},
    "scheme": {"name": "ring_attention"}, "all_reduce": {"algorithm": "in_switch"}})");
  const std::vector<Program> programs = programs_of(config);
  EXPECT_EQ(FoldedMachine(config, programs).standing(), 8U);
  std::uint32_t sums = 0;
  for (std::uint32_t i = 0; i < programs[0].ops.size(); ++i) {
    if (programs[0].ops[i].kind != ProgramOpKind::collective) continue;
    const FoldedMachine alone(config, programs, OpId{i});
    EXPECT_EQ(alone.why_not(), "");
    const bool sum = programs[0].ops[i].collective.kind == CollectiveKind::all_reduce;
    EXPECT_EQ(alone.standing(), sum ? 1U : 8U);
    sums += sum ? 1 : 0;
    if (sum) break;
  }
  EXPECT_EQ(sums, 1U);
}

}  // namespace
}  // namespace weft
