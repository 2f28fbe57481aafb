// Planes of two levels of reducing switches, and sums that are pushed: what crosses the links, and that all of it
// arrives (the machine checks it), with tables of any size.
#include <gtest/gtest.h>

#include <map>

#include "tests/cli/ran_machine.h"

namespace weft {
namespace {

constexpr std::int64_t kSize = 1 << 20;

// 8 GPUs, and planes of 4 leaf and 2 spine switches.
RunConfig small_tree(const std::string& form, std::int64_t table_bytes, const std::string& kind = "all_reduce",
                     std::int64_t bytes = kSize) {
  const Json document{{"system", {{"base", "klenk16"}, {"max_gpus", 8}}},
                      {"gpus", 8},
                      {"network", {{"tree", {{"levels", 2}, {"radix", 4}}}}},
                      {"workload", {{"collective", kind}, {"bytes", bytes}}},
                      {"all_reduce", {{"algorithm", "in_switch"}, {"registered", true}}},
                      {"collectives", {{"in_switch", {{"form", form}, {"waves", 4}, {"wave_bytes", 65536}}}}},
                      {"switch_reduce", {{"table_bytes_per_port", table_bytes}}}};
  return read_run_config(document, "test.json");
}

struct Ran : RanMachine {
  explicit Ran(const RunConfig& config) : RanMachine(config) {
    for (const Machine::Link& link : machine->links()) {
      const bool from_gpu = link.name.rfind("gpu", 0) == 0;
      const bool to_gpu = link.name.find(">gpu") != std::string::npos;
      bytes[from_gpu ? "gpus->" : to_gpu ? "->gpus" : "between"] += link.statistics->payload_bytes;
    }
    for (std::size_t s = 0; s < machine->switches(); ++s) {
      const ReducerStatistics one = machine->switch_at(s).reducer()->statistics();
      statistics.refused += one.refused;
      statistics.wasted_replies += one.wasted_replies;
      statistics.evicted += one.evicted;
      statistics.timed_out += one.timed_out;
      statistics.stalled += one.stalled;
    }
  }
  std::map<std::string, std::int64_t> bytes;  // payload
  ReducerStatistics statistics;
};

// Payload without flags: these are 16 B, few and counted with the tolerance.
void expect_bytes(std::int64_t got, double expected) {
  EXPECT_NEAR(static_cast<double>(got), expected, 0.02 * expected);
}

TEST(SwitchLevelsFormula, PullMovesTheSizeOnceUpAndDownEachLeaf) {
  const Ran ran(small_tree("pull", 1 << 20));
  ASSERT_TRUE(ran.finished);
  EXPECT_EQ(ran.machine->switches(), 6U * (4 + 2));
  EXPECT_EQ(ran.statistics.refused, 0);
  expect_bytes(ran.bytes.at("gpus->"), 8.0 * (kSize + kSize / 8));
  expect_bytes(ran.bytes.at("->gpus"), 8.0 * (kSize + kSize / 8));
  // Up: its sums for the other leaves, 3/4, and its own sums to them, 1/4; down the same of the others.
  expect_bytes(ran.bytes.at("between"), 4.0 * 2 * kSize);
}

TEST(SwitchLevels, PullWithOneEntryStallsLeavesAndPassesRepliesOn) {
  const Ran ran(small_tree("pull", 128));
  ASSERT_TRUE(ran.finished);
  EXPECT_GT(ran.statistics.stalled, Time(0));
  EXPECT_GT(ran.statistics.refused, 0);
  EXPECT_GT(ran.statistics.wasted_replies, 0);
  EXPECT_GT(ran.bytes.at("between"), 4 * 2 * kSize);
}

TEST(SwitchLevelsFormula, PushMovesTheSizeEachWayOverEachLink) {
  const Ran ran(small_tree("push", 1 << 20));
  ASSERT_TRUE(ran.finished);
  EXPECT_EQ(ran.statistics.evicted + ran.statistics.timed_out, 0);
  EXPECT_EQ(ran.bytes.at("gpus->"), 8 * kSize);
  EXPECT_EQ(ran.bytes.at("->gpus"), 8 * kSize);
  EXPECT_EQ(ran.bytes.at("between"), 4 * 2 * kSize);
}

TEST(SwitchLevels, PushWithOneEntryEvictsAndTheHomeGpuFinishes) {
  const Ran ran(small_tree("push", 128));
  ASSERT_TRUE(ran.finished);
  EXPECT_GT(ran.statistics.evicted, 0);
  EXPECT_GT(ran.bytes.at("->gpus"), 8 * kSize);  // partial sums to their homes
  for (std::size_t g = 0; g < 8; ++g) EXPECT_TRUE(ran.machine->gpu(g).done());
}

TEST(SwitchLevels, UnicastsCrossThePlane) {
  RunConfig config = small_tree("pull", 4096);
  config.collective.algorithm = AllReduceAlgorithm::ring;
  const Ran ran(config);
  ASSERT_TRUE(ran.finished);
  EXPECT_GT(ran.bytes.at("between"), 0);
}

TEST(SwitchLevelsFormula, ReduceScatterSendsEachLineUpOnce) {
  const Ran ran(small_tree("pull", 1 << 20, "reduce_scatter"));
  ASSERT_TRUE(ran.finished);
  expect_bytes(ran.bytes.at("gpus->"), 8.0 * kSize);
  expect_bytes(ran.bytes.at("->gpus"), kSize);
  expect_bytes(ran.bytes.at("between"), 4.0 * kSize);  // up for the other leaves 3/4, down its own 1/4
}

// Other collectives: payload in units of what a rank gives, or of what the root has.
void expect_bytes_of(const std::string& kind, double out, double in, double between) {
  const std::int64_t size = kind == "all_gather" ? kSize / 8 : kSize;  // enough that flags are few
  const Ran ran(small_tree("pull", 1 << 20, kind, size));
  ASSERT_TRUE(ran.finished);
  EXPECT_EQ(ran.scripts.collectives().front().plan.algorithm, kInSwitch);
  const auto near = [&](const char* where, double units) {
    EXPECT_NEAR(static_cast<double>(ran.bytes.at(where)), units * static_cast<double>(size),
                0.05 * units * static_cast<double>(size))
        << where;
  };
  near("gpus->", out);
  near("->gpus", in);
  near("between", between);
}

TEST(SwitchLevelsFormula, AllGatherSendsEachPartUpOnce) { expect_bytes_of("all_gather", 8, 64, 4 * (2 + 6)); }

TEST(SwitchLevelsFormula, BroadcastGoesUpOnceAndDownToTheOtherLeaves) { expect_bytes_of("broadcast", 1, 8, 1 + 3); }

TEST(SwitchLevelsFormula, ReduceGoesUpFromTheOtherLeavesAndDownOnce) { expect_bytes_of("reduce", 8, 1, 3 + 1); }

TEST(SwitchLevels, ABarrierIsAFlagOfEachRankToAll) {
  const Ran ran(small_tree("pull", 1 << 20, "barrier", 0));
  ASSERT_TRUE(ran.finished);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  EXPECT_EQ(ran.bytes.at("gpus->"), 8 * 16 * channels);
  EXPECT_EQ(ran.bytes.at("->gpus"), 8 * 8 * 16 * channels);
}

TEST(SwitchLevels, APushThatARankIsLateForWaitsInTheTable) {
  RunConfig config = small_tree("push", 256);
  std::get<CollectiveWorkload>(config.workload).start_delay_us = {0, 0, 0, 0, 0, 0, 0, 100};
  const Ran ran(config);
  ASSERT_TRUE(ran.finished);
  EXPECT_GT(ran.statistics.evicted + ran.statistics.timed_out, 0);
}

TEST(SwitchLevels, ImpossibleShapesAreRefused) {
  const auto refused = [](const Json& tree, std::uint32_t gpus) {
    const Json document{{"system", {{"base", "klenk128"}, {"max_gpus", gpus}}},
                        {"network", {{"tree", tree}}},
                        {"gpus", gpus},
                        {"workload", {{"collective", "all_reduce"}, {"bytes", 1024}}}};
    EXPECT_THROW(static_cast<void>(read_run_config(document, "test.json")), InputError) << document.dump();
  };
  refused({{"levels", 3}, {"radix", 16}}, 128);
  refused({{"levels", 2}, {"radix", 15}}, 16);
  refused({{"levels", 2}, {"radix", 4}}, 64);
  refused({{"levels", 2}, {"radix", 16}}, 129);
}

// The tree between nodes (NVLSTree), between parts of one.
TEST(SwitchLevels, AGroupLargerThanTheFanInIsAHierarchyOfItsParts) {
  RunConfig config = small_tree("pull", 1 << 20);
  config.system.switch_reduce->fan_in = 5;
  const Ran ran(config);
  ASSERT_TRUE(ran.finished);
  ASSERT_EQ(ran.scripts.multicast_groups().size(), 2U);
  EXPECT_EQ(ran.scripts.multicast_groups()[1].gpus, (std::vector<GpuId>{{4}, {5}, {6}, {7}}));
  // In a part all of the message and a share of it, as in a node; to the other part a share.
  expect_bytes(ran.bytes.at("gpus->"), 8.0 * (kSize + 2 * kSize / 4));
}

TEST(SwitchLevels, PushNeedsATimeout) {
  const Json document{{"system", "klenk16"},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", 1024}}},
                      {"collectives", {{"in_switch", {{"form", "push"}}}}},
                      {"switch_reduce", {{"timeout_ns", 0}}}};
  EXPECT_THROW(static_cast<void>(read_run_config(document, "test.json")), InputError);
}

TEST(SwitchLevels, LimitsOfTheHardwareAreNamed) {
  const auto message = [](const Json& reduce) {
    RunConfig config = small_tree("pull", 4096);
    if (reduce.contains("fan_in")) config.system.switch_reduce->fan_in = reduce["fan_in"];
    if (reduce.contains("max_groups")) config.system.switch_reduce->max_groups = reduce["max_groups"];
    std::get<CollectiveWorkload>(config.workload).groups = {{0, 1, 2, 3, 4}, {5, 6, 7}};
    if (reduce.contains("no_fp32")) config.system.switch_reduce->adders.lanes[0] = 0;
    std::vector<std::string> notes;
    const std::vector<Program> programs = make_programs(config, notes);
    try {
      const Scripts scripts(config, programs);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(Json::object()), "");
  EXPECT_NE(message({{"fan_in", 4}}).find("an entry counts 4 GPUs at most"), std::string::npos);  // 5 has no parts
  EXPECT_NE(message({{"max_groups", 1}}).find("the switches know 1 groups at most"), std::string::npos);
  EXPECT_NE(message({{"no_fp32", true}}).find("no lanes for fp32"), std::string::npos);
}

}  // namespace
}  // namespace weft
