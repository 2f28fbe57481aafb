#include <gtest/gtest.h>

#include <map>
#include <set>

#include "bench/gpu/plan/options.h"
#include "bench/gpu/plan/pair_plan.h"

namespace weft::gpu_probe {
namespace {

std::optional<Options> parse(std::vector<const char*> arguments, int* exit_code = nullptr) {
  arguments.insert(arguments.begin(), "weft_gpu_probe");
  int code = 0;
  auto options = parse_options(static_cast<int>(arguments.size()), arguments.data(), code);
  if (exit_code != nullptr) *exit_code = code;
  return options;
}

TEST(GpuProbeVictims, EveryClassIsInBothHalves) {
  std::map<std::string, std::set<Half>> halves;
  for (const Victim& victim : victims()) halves[victim.kernel_class].insert(victim.half);
  for (const auto& [kernel_class, seen] : halves) EXPECT_EQ(seen.size(), 2u) << kernel_class;
}

TEST(GpuProbeVictims, NamesAreDistinct) {
  std::set<std::string> names;
  for (const Victim& victim : victims()) EXPECT_TRUE(names.insert(victim.name).second) << victim.name;
  for (const auto* set : {&core_aggressors(), &surface_aggressors()}) {
    for (const Aggressor& aggressor : *set) EXPECT_TRUE(names.insert(aggressor.name).second) << aggressor.name;
  }
}

TEST(GpuProbeVictims, AreTimedForLongEnough) {
  for (const Victim& victim : victims()) {
    const double us = estimated_us(victim);
    EXPECT_GE(us * repetitions(us, 50).launches, 50) << victim.name;
    EXPECT_LE(us, 20000) << victim.name;
  }
}

TEST(GpuProbeVictims, SequencesHaveADozenConvolutionsAndAWholeLayer) {
  const auto convolutions = resnet50_backward(32);
  EXPECT_GE(convolutions.size(), 24u);
  const auto layer = transformer_backward({8, 1024, 12, 768});
  double sum = 0;
  for (const Step& step : layer) sum += flops(step);
  // Twice the forward's 24 T w^2 for the weights, plus 8 B L^2 w for attention.
  const double tokens = 8 * 1024, width = 768;
  EXPECT_DOUBLE_EQ(sum, 48 * tokens * width * width + 8 * tokens * 1024 * width);
}

TEST(GpuProbeVictims, OperatorsAreThoseOfTheProfiler) {
  const Operator mm = operator_of({StepKind::product, Element::bf16, Product{2, 3, 4, 1, false, true}});
  EXPECT_EQ(mm.name, "aten::mm");
  EXPECT_EQ(mm.inputs, (std::vector<std::vector<std::int64_t>>{{2, 4}, {4, 3}}));
  EXPECT_EQ(mm.type, "c10::BFloat16");
  const Operator conv =
      operator_of({StepKind::conv_backward_filter, Element::fp16, Convolution{2, 3, 8, 8, 5, 3, 2, 1}});
  EXPECT_EQ(conv.name, "aten::convolution_backward");
  EXPECT_EQ(conv.inputs, (std::vector<std::vector<std::int64_t>>{{2, 5, 4, 4}, {2, 3, 8, 8}, {5, 3, 3, 3}}));
}

TEST(GpuProbeAggressors, PaceFollowsFromTheRateOfAllBlocks) {
  const Aggressor slow = make_aggressor(AggressorKind::copy, 16, 100);
  EXPECT_EQ(slow.chunk_bytes, 16 << 10);
  EXPECT_DOUBLE_EQ(*chunk_interval_ns(slow), 16384 * 16 / 100.0);
  EXPECT_FALSE(chunk_interval_ns(make_aggressor(AggressorKind::copy, 16, {})));
  EXPECT_EQ(make_aggressor(AggressorKind::copy, 8, 400).chunk_bytes, 64 << 10);
}

TEST(GpuProbeAggressors, SlicesAreWholeChunksWithinTheBuffer) {
  for (const auto* set : {&core_aggressors(), &surface_aggressors()}) {
    for (const Aggressor& a : *set) {
      const std::int64_t slice = slice_bytes(a);
      if (tensors(a.kind) == 0) continue;
      EXPECT_GT(slice, 0) << a.name;
      EXPECT_EQ(slice % a.chunk_bytes, 0) << a.name;
      EXPECT_LE(slice * a.blocks * tensors(a.kind), a.buffer_bytes) << a.name;
    }
  }
}

TEST(GpuProbePlan, FitsInNineMinutesAndMeetsEveryVictim) {
  const auto plan = plan_pairs({});
  EXPECT_LE(estimated_s(plan, 50), 540);
  EXPECT_LE(estimated_s(plan, 100), 540);
  std::set<const Victim*> met;
  for (const VictimPlan& one : plan) met.insert(one.victim);
  EXPECT_EQ(met.size(), victims().size());
}

TEST(GpuProbePlan, SelectsByPattern) {
  const auto options = parse({"--suite", "pairs", "--victim", "^add_fp32", "--aggressor", "spin_16$"});
  ASSERT_TRUE(options);
  const auto plan = plan_pairs(options->selection);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].victim->name, "add_fp32_64M");
  ASSERT_EQ(plan[0].aggressors.size(), 1u);
  EXPECT_EQ(plan[0].aggressors[0]->name, "spin_16");
}

TEST(GpuProbePlan, RepeatsShortVictimsWithinOneTiming) {
  EXPECT_EQ(repetitions(6, 50).launches, 10);
  EXPECT_EQ(repetitions(500, 50).launches, 1);
  EXPECT_GE(repetitions(50000, 50).per_round, 2);
}

TEST(GpuProbeOptions, WrongOnesAreRefused) {
  int code = 0;
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_FALSE(parse({"--suite", "some"}, &code));
  EXPECT_NE(code, 0);
  EXPECT_FALSE(parse({"--victim", "("}, &code));
  EXPECT_EQ(code, 64);
  testing::internal::GetCapturedStderr();
  testing::internal::GetCapturedStdout();
}

TEST(GpuProbeOptions, LaterSuiteAndBudgetWin) {
  const auto options = parse({"--budget-s", "9", "--libraries", "a", "b", "--suite", "describe", "--budget-s", "3.5"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->suites, std::vector{Suite::describe});
  EXPECT_DOUBLE_EQ(options->budget_s, 3.5);
  EXPECT_EQ(options->libraries.size(), 2u);
}

TEST(GpuProbeOptions, LaunchesAloneOnlyIfAsked) {
  EXPECT_EQ(parse({"--suite", "launch"})->suites, std::vector{Suite::launch});
}

TEST(GpuProbeOptions, DryRunTellsTimes) {
  const auto options = parse({"--dry-run"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->suites.size(), 6u);
  EXPECT_NE(dry_run_text(*options).find("pairs: about"), std::string::npos);
  EXPECT_NE(list_text().find("aggressor copy_16_100GBps"), std::string::npos);
}

}  // namespace
}  // namespace weft::gpu_probe
