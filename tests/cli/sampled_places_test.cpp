// What of a program in samples one GPU does for others, where they are not alike in all.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/sampled/program_likeness.h"
#include "cli/sampled/symmetry.h"
#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;

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

double collective_end(const Json& result) { return result.at("collectives").at(0).at("end_s").get<double>(); }

TEST(SampledPlaces, OneGpuStandsForAllThatKeepDifferentParts) {
  const auto [cycle, sampled] = run_both(kProducts);
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 4"));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("in other buffers than GPU 0"));
  EXPECT_NEAR(iteration(sampled, "time_s") / iteration(cycle, "time_s"), 1, 0.04);
}

// All pairs stay on their rails; where they do not, all of a node are needed, as long as nothing else needs more.
TEST(SampledPlaces, OneGpuOrNodeStandsForAllPairs) {
  const auto [on_rails, folded] = run_both(R"({"system": {"base": "hgx-h100-cluster", "gpu": {"compute_units": 24}},
    "gpus": 16, "workload": {"collective": "all_to_all", "bytes": 1048576}})");
  EXPECT_THAT(folded.at("notes").dump(), HasSubstr("One GPU stands for all 16"));
  EXPECT_NEAR(collective_end(folded) / collective_end(on_rails), 1, 0.04);
  const auto [cycle, sampled] = run_both(R"({"system": {"base": "hgx-h100-cluster", "gpu": {"compute_units": 24},
      "collectives": {"pxn": false}},
    "gpus": 16, "workload": {"collective": "all_to_all", "bytes": 1048576}})");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("8 GPUs stand for all 16"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.04);
  EXPECT_GT(sampled.at("engine").at("sampling_error_estimate").get<double>(), 0.03);
}

// GPUs are through at other times, so most of them are idle before the last one is.
TEST(SampledPlaces, WhatIsExposedIsTheMeanOfAllGpus) {
  const auto [cycle, sampled] =
      run_both(R"({"system": "hgx-h200", "gpus": 4, "workload": {"collective": "scatter", "bytes": 4194304}})");
  EXPECT_NEAR(iteration(sampled, "time_s") / iteration(cycle, "time_s"), 1, 0.01);
  EXPECT_LT(iteration(cycle, "communication_exposed_s"), 0.7 * collective_end(cycle));
  for (const char* of : {"communication_s", "communication_exposed_s", "idle_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.02) << of;
  }
}

// Ranks of a tree are through at other times, and go on with the next one, for whose channels kernels wait.
TEST(SampledPlaces, WhoIsThroughEarlyGoesOnWithTheNext) {
  const auto [cycle, sampled] = run_both(R"({"system": {"base": "dgx-a100-cluster", "gpu": {"compute_units": 24},
      "network": {"cluster": {"gpus_per_node": 2, "nics_per_node": 2}}}, "gpus": 4,
    "workload": {"model": "attention", "sequence": 128, "hidden": 512, "heads": 4},
    "scheme": {"name": "data_parallel", "bucket_MiB": 1}, "all_reduce": {"algorithm": "tree"}})");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("Every GPU was simulated by itself"));
  for (const char* of : {"time_s", "backward_s", "communication_s", "communication_exposed_s", "idle_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.04) << of;
  }
}

// Of 24 by halving and doubling, eight first hand what they have to another one; of four in a cube mesh, some send by
// links of two lanes.
TEST(SampledPlaces, KernelsAreSlowedOnEachGpuByWhatItDoesThere) {
  constexpr const char* kStep = R"({{"system": {{"base": "{}", "gpu": {{"compute_units": 24}}}}, "gpus": {},
    "workload": {{"model": "attention", "sequence": {}, "hidden": 512, "heads": 4}},
    "scheme": {{"name": "data_parallel", "bucket_MiB": 1}}, "all_reduce": {{"algorithm": "{}", "channels": 4}}}})";
  for (const std::string& step : {fmt::format(kStep, "dgx-a100-cluster", 24, 256, "halving_doubling"),
                                  fmt::format(kStep, "dgx1-v100", 4, 1024, "ring")}) {
    const auto [cycle, sampled] = run_both(step);
    EXPECT_NEAR(iteration(sampled, "backward_s") / iteration(cycle, "backward_s"), 1, 0.015) << step;
  }
}

// Along a line the last of a ring sends to the first through all others. In coarser lines it took 22 % longer.
TEST(SampledPlaces, MessagesThatMeetInRoutersAreToldInFineLines) {
  const auto [cycle, sampled] = run_both(R"({"system": {"base": "dgx-a100", "gpu": {"compute_units": 24}}, "gpus": 8,
    "network": {"topology": "mesh", "dimensions": [8]}, "workload": {"collective": "all_reduce", "bytes": 16777216},
    "all_reduce": {"algorithm": "ring", "protocol": "Simple", "channels": 8}})");
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.05);
  EXPECT_GT(sampled.at("engine").at("sampling_error_estimate").get<double>(), 0.035);
}

// The nearest message of equal shares is longer than the longest that LL takes; it goes by LL all the same.
TEST(SampledPlaces, EqualSharesGoByTheProtocolOfTheMessage) {
  const RunConfig config =
      config_of(R"({"system": "hgx-h200", "gpus": 6, "workload": {"collective": "reduce_scatter", "bytes": 4000000}})");
  const FoldedMachine folded(config, programs_of(config));
  ASSERT_EQ(folded.why_not(), "");
  EXPECT_EQ(folded.scripts().collectives().front().plan.protocol, "LL");
}

// Here chunks of 8 KiB leave the third channel empty: what the first one has is what all get, on three channels.
TEST(SampledPlaces, EqualSharesAreThoseOfTheFullestBlock) {
  const auto [cycle, sampled] =
      run_both(R"({"system": "hgx-h200", "gpus": 8, "workload": {"collective": "reduce_scatter", "bytes": 100000}})");
  EXPECT_EQ(sampled.at("collectives").at(0).at("channels"), cycle.at("collectives").at(0).at("channels"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.03);
}

// What a rank gives to a gather is one part, not one of each rank: rounded as that it has up to 5.6 times the bytes.
TEST(SampledPlaces, GathersOverNodesAreRoundedByTheirPart) {
  const auto [cycle, sampled] = run_both(
      R"({"system": "hgx-h100-cluster", "gpus": 16, "workload": {"collective": "all_gather", "bytes": 131072}})");
  EXPECT_EQ(sampled.at("collectives").at(0).at("protocol"), "LL128");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 16"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.02);
}

// Of a short message over nodes the library's trees reach some places of a node only; by as full ones at all places one
// GPU stands for all.
TEST(SampledPlaces, ShortTreesOverNodesAreOneAtEachPlace) {
  for (const int gpus : {16, 32}) {
    const auto [cycle, sampled] = run_both(fmt::format(
        R"({{"system": "hgx-h100-cluster", "gpus": {}, "workload": {{"collective": "all_reduce", "bytes": 16000}}}})",
        gpus));
    const Json& collective = sampled.at("collectives").at(0);
    EXPECT_EQ(collective.at("algorithm"), "double_binary_tree");
    EXPECT_EQ(collective.at("channels"), cycle.at("collectives").at(0).at("channels"));
    EXPECT_LT(collective.at("channels").get<int>(), 16);
    EXPECT_THAT(sampled.at("notes").dump(), HasSubstr(fmt::format("One GPU stands for all {}", gpus)));
    EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.045);
    EXPECT_GT(sampled.at("engine").at("sampling_error_estimate").get<double>(), 0.03);
  }
}

// Some of their blocks only copy what stays: that is no message cut unevenly.
TEST(SampledPlaces, AllPairsByLlSendWhatTheySend) {
  const auto [cycle, sampled] =
      run_both(R"({"system": "hgx-h100", "gpus": 2, "workload": {"collective": "all_to_all", "bytes": 131072}})");
  EXPECT_EQ(sampled.at("collectives").at(0).at("protocol"), "LL");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 2"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.05);
}

// The first one of a row has its message from HBM, the others from the L2.
TEST(SampledPlaces, LaterOnesOfARowFindTheirMessageInL2) {
  const auto [cycle, sampled] = run_both(R"({"system": "hgx-h100", "gpus": 8, "iterations": 3,
    "workload": {"collective": "reduce_scatter", "bytes": 8388608}})");
  const auto lasted = [](const Json& result, std::size_t i) {
    const Json& one = result.at("collectives").at(i);
    return one.at("end_s").get<double>() - one.at("start_s").get<double>();
  };
  EXPECT_NEAR(lasted(sampled, 2) / lasted(cycle, 2), 1, 0.02);
}

// 164 B are fewer chunks than ranks: those without one go on.
TEST(SampledPlaces, ShortCollectivesByThemselvesAreSimulatedAsTheyAre) {
  const auto [cycle, sampled] = run_both(R"({"system": "hgx-h100", "gpus": 8, "iterations": 3,
    "workload": {"collective": "all_reduce", "bytes": 164}})");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("nothing but short collectives runs"));
  EXPECT_EQ(sampled.at("collectives"), cycle.at("collectives"));
}

// Sizes of groups count, members do not.
TEST(ProgramLikeness, IsOfGroupsThatAreAsLarge) {
  const std::vector<Program> programs = programs_of(config_of(R"({"system": "dgx-a100", "gpus": 4,
    "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 4, "batch": 2},
    "scheme": {"name": "ulysses", "sample_gpus": 2}})"));
  EXPECT_EQ(compare_programs(programs).why_not, "");
  Program other = programs[3];
  for (ProgramOp& op : other.ops.edit()) {
    if (op.kind == ProgramOpKind::collective) op.collective.group = GpuGroup({GpuId{0}, GpuId{2}, GpuId{3}});
  }
  EXPECT_NE(compare_programs({programs[0], other}).why_not, "");
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

std::string on_fat_tree(int gpus, const char* collective, int bytes, const char* all_reduce = "{}") {
  return fmt::format(R"({{"system": {{"base": "hgx-h100", "max_gpus": 128, "switch_reduce": null,
      "network": {{"topology": "fat_tree", "tree": {{"levels": 2, "radix": 16}}}}}},
    "gpus": {}, "workload": {{"collective": "{}", "bytes": {}}}, "all_reduce": {}}})",
                     gpus, collective, bytes, all_reduce);
}

// Eight leaves of eight GPUs for all sixteen; what goes from the last one to the next half comes back to the first one.
TEST(SampledPlaces, ABranchOfAFatTreeStandsForAll) {
  const auto [cycle, sampled] = run_both(on_fat_tree(128, "all_reduce", 262144));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("64 GPUs stand for all 128"));
  EXPECT_NEAR(collective_end(sampled) / collective_end(cycle), 1, 0.03);
  const auto bytes_of = [](const Json& result, const char* name) {
    double sum = 0;
    for (const Json& link : result.at("links")) {
      if (link.at("name").get<std::string>().starts_with(name)) sum += link.at("bytes").get<double>();
    }
    return sum;
  };
  // All links; from a GPU that is not simulated, and from leaves that are not. Roots are chosen by a hash.
  for (const char* name : {"", "gpu127->", "router12->", "router15->"}) {
    EXPECT_NEAR(bytes_of(sampled, name) / bytes_of(cycle, name), 1, 0.03) << name;
  }
}

// A share of 4096 B, of which a line with flags holds 120, begins with a line and a slot for all.
TEST(SampledPlaces, SharesOfLinesWithFlagsAreAlike) {
  const RunConfig config = config_of(on_fat_tree(128, "all_reduce", 8388608, R"({"algorithm": "ring",
      "protocol": "LL128", "channels": 16})"));
  const FoldedMachine folded(config, programs_of(config));
  EXPECT_EQ(folded.why_not(), "");
  EXPECT_EQ(folded.standing(), 64U);
}

// Ranks get out of step in some thirty of 127 steps, and hold up each other.
TEST(SampledPlaces, ManyStepsAreWatchedBeforeOthersAreLeftOut) {
  const Json sampled = run_one(on_fat_tree(128, "all_reduce", 8388608, R"({"algorithm": "ring",
      "protocol": "Simple", "channels": 4})"),
                               "sampled");
  const double skipped = sampled.at("engine").at("skipped_fraction").get<double>();
  EXPECT_GT(skipped, 0.6);
  EXPECT_LT(skipped, 0.69);  // 0.67; 0.71 if only the first of the two runs is watched
  // One standard deviation of its folding alone is 4.5 %.
  EXPECT_GT(sampled.at("engine").at("sampling_error_estimate").get<double>(), 0.09);
}

TEST(SampledPlaces, FewGpusOfAFatTreeAndAllPairsAreSimulatedOneByOne) {
  const auto why_not = [](const std::string& text) {
    const RunConfig config = config_of(text);
    return FoldedMachine(config, programs_of(config)).why_not();
  };
  EXPECT_THAT(why_not(on_fat_tree(64, "all_reduce", 262144)), HasSubstr("too few"));
  EXPECT_THAT(why_not(on_fat_tree(124, "all_reduce", 262144)), HasSubstr("equally"));
  EXPECT_THAT(why_not(on_fat_tree(128, "all_to_all", 1048576)), HasSubstr("roots of the tree"));
  EXPECT_THAT(why_not(on_fat_tree(128, "all_gather", 65536)), HasSubstr("unequal shares"));
  // Chunks of 19200 B, of which fewer than there are ranks are sent.
  EXPECT_THAT(why_not(R"({"system": {"base": "dgx-a100", "max_gpus": 128, "switch_reduce": null,
      "network": {"topology": "fat_tree", "tree": {"levels": 3, "radix": 8}}}, "gpus": 128,
      "workload": {"collective": "all_reduce", "bytes": 6291456},
      "all_reduce": {"algorithm": "ring", "protocol": "LL128", "channels": 16}})"),
              HasSubstr("longer"));
}

}  // namespace
}  // namespace weft
