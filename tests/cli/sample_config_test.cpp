// Configurations in which GPUs share a sample: what they mean, and what is refused.
#include "cli/config/sample_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/config/run_config.h"
#include "cli/report/report_figures.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"
#include "workloads/memory_plan.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

RunConfig config(const std::string& scheme, const std::string& workload = R"({"model": "attention", "sequence": 4096,
    "hidden": 1024, "heads": 8})") {
  return read_run_config(
      parse_json(R"({"system": "dgx-a100", "gpus": 8, "workload": )" + workload + R"(, "scheme": )" + scheme + "}",
                 "test"),
      "test");
}

std::string refusal(const std::string& scheme, const std::string& workload) {
  try {
    static_cast<void>(config(scheme, workload));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SampleConfig, EveryGpuIsInTheGroupOfItsSample) {
  const RunConfig hybrid = config(R"({"name": "ring_attention", "sample_gpus": 4})");
  const SampleSplit split = sample_split(hybrid, 6);
  EXPECT_EQ(split.gpus, (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(split.rank, 2U);
}

TEST(SampleConfig, DataParallelGpusHaveASampleEach) {
  const std::vector<Program> programs = sample_programs(config(R"({"name": "data_parallel"})"));
  ASSERT_EQ(programs.size(), 8U);
  for (const ProgramOp& op : programs.front().ops) {
    if (op.kind == ProgramOpKind::collective) {
      EXPECT_EQ(op.collective.kind, CollectiveKind::all_reduce);
      EXPECT_EQ(op.collective.group.size(), 8U);
    }
  }
  EXPECT_EQ(programs.front().tokens_per_iteration, 4096);
  EXPECT_EQ(sample_programs(config(R"({"name": "ulysses"})")).front().tokens_per_iteration, 512);
}

// Their replicas reduce what they all have among all, and of the rest each part among those who have it.
TEST(SampleConfig, GradientsAreReducedAmongThoseWhoHaveThem) {
  const RunConfig hybrid = config(R"({"name": "megatron", "sample_gpus": 4})");
  std::map<std::vector<GpuId>, std::int64_t> reduced;
  const std::vector<Program> programs = sample_programs(hybrid);
  for (const ProgramOp& op : programs[1].ops) {
    if (op.kind == ProgramOpKind::collective && op.name == "all_reduce") {
      reduced[op.collective.group.members()] += op.collective.bytes.count();
    }
  }
  const std::int64_t hidden = 1024;
  // Weights and biases of projections of query, key, value, and the weight of the output.
  EXPECT_EQ(reduced.at({GpuId{1}, GpuId{5}}), 4 * (4 * hidden * hidden + 3 * hidden) / 4);
  EXPECT_EQ(reduced.at(GpuGroup::first(8).members()), 4 * hidden);
}

TEST(SampleConfig, ScoresDoNotFitWhereBlocksDo) {
  const auto peak = [](const char* scheme) {
    return peak_memory(sample_programs(config(scheme, R"({"model": "attention", "sequence": 262144, "hidden": 4096,
        "heads": 32})"))
                           .front())
        .total.count();
  };
  EXPECT_GT(peak(R"({"name": "single_sample"})"), std::int64_t{80} << 30);
  EXPECT_LT(peak(R"({"name": "ring_attention"})"), std::int64_t{8} << 30);
}

TEST(SampleConfig, RefusesWhatASchemeCannotTake) {
  EXPECT_THAT(refusal(R"({"name": "ulysses"})", R"({"model": "attention", "sequence": 64, "hidden": 64, "heads": 4})"),
              HasSubstr("4 heads"));
  EXPECT_THAT(
      refusal(R"({"name": "ring_attention"})", R"({"model": "attention", "sequence": 7, "hidden": 64, "heads": 4})"),
      HasSubstr("/workload/sequence"));
  EXPECT_THAT(
      refusal(R"({"name": "ring_attention"})", R"({"model": "attention", "sequence": 64, "hidden": 63, "heads": 4})"),
      HasSubstr("divisor of hidden"));
  EXPECT_THAT(refusal(R"({"name": "ring_attention", "sample_gpus": 3})",
                      R"({"model": "attention", "sequence": 64, "hidden": 64, "heads": 4})"),
              HasSubstr("/scheme/sample_gpus"));
  EXPECT_THAT(refusal(R"({"name": "single_sample", "offset": -1})",
                      R"({"model": "attention", "sequence": 64, "hidden": 64, "heads": 4})"),
              HasSubstr("/scheme/offset"));
  EXPECT_THAT(refusal(R"({"name": "single_sample", "offset": 0})",
                      R"({"model": "attention", "sequence": 64, "hidden": 64, "heads": 4})"),
              HasSubstr("/scheme/offset"));
  EXPECT_THAT(refusal(R"({"name": "single_sample"})",
                      R"({"model": "distributed_product", "product": "nt", "rows": 64, "columns": 8, "offset": 0})"),
              HasSubstr("/workload/offset"));
  EXPECT_THAT(refusal(R"({"name": "ring_attention"})", R"({"model": "resnet50", "batch": 4})"),
              HasSubstr("/scheme/name"));
  EXPECT_THAT(refusal(R"({"name": "ulysses"})",
                      R"({"model": "distributed_product", "product": "nt", "rows": 64, "columns": 8})"),
              HasSubstr("single_sample"));
  EXPECT_THAT(refusal(R"({"name": "data_parallel", "offset": 4})", R"({"model": "resnet50", "batch": 4})"),
              HasSubstr("offset"));
}

TEST(SampleConfig, ReadsWhatItWrote) {
  const RunConfig first = config(R"({"name": "ulysses_ring", "split": "striped"})");
  EXPECT_EQ(first.scheme.ulysses_gpus, 4U);
  EXPECT_EQ(read_run_config(first.resolved, "test").resolved.dump(), first.resolved.dump());
  const RunConfig second = config(R"({"name": "single_sample", "offset": 7})");
  EXPECT_EQ(second.scheme.offset, 7);
  EXPECT_EQ(read_run_config(second.resolved, "test").resolved.dump(), second.resolved.dump());
}

constexpr const char* kTemporal = R"({"model": "temporal_convolution", "sequence": 4096, "channels": 64, "kernel": 3,
    "dilations": [1, 2, 4, 8], "layers": 2, "batch": 2})";

TEST(SpatialConfig, NeighboursHaveASampleAndAllReduceItsWeights) {
  const RunConfig hybrid = config(R"({"name": "spatial", "sample_gpus": 4})", kTemporal);
  EXPECT_EQ(time_axis(hybrid, 6).split.gpus, (std::vector<std::uint32_t>{4, 5, 6, 7}));
  EXPECT_EQ(time_axis(hybrid, 6).first_step(), 2048);
  const std::vector<Program> programs = sample_programs(hybrid);
  std::int64_t halos = 0;
  std::int64_t reduced = 0;
  for (const ProgramOp& op : programs[6].ops) {
    if (op.kind != ProgramOpKind::collective) continue;
    if (op.collective.kind == CollectiveKind::all_reduce) {
      EXPECT_EQ(op.collective.group, GpuGroup::first(8));
      reduced += op.collective.bytes.count();
      continue;
    }
    EXPECT_EQ(op.collective.group, GpuGroup({GpuId{4}, GpuId{5}, GpuId{6}, GpuId{7}}));
    EXPECT_EQ(op.collective.distance, op.phase == TrainingPhase::forward ? 1U : 3U);
    halos += op.collective.bytes.count();
  }
  EXPECT_EQ(halos, 2 * 2 * 2 * (1 + 2) * 2 * 64 * 2);  // passes, convolutions, reach, samples, channels, FP16
  EXPECT_EQ(reduced, 4 * 4 * (3 * 64 * 64 + 64));
  EXPECT_EQ(programs.front().tokens_per_iteration, 2 * 4096 / 4);
  const std::vector<Program> replicas = sample_programs(config(R"({"name": "data_parallel"})", kTemporal));
  for (const ProgramOp& op : replicas.front().ops) {
    EXPECT_NE(op.collective.kind, CollectiveKind::shift);
  }
}

TEST(SpatialConfig, ReadsWhatItWrote) {
  const RunConfig first = config(R"({"name": "spatial", "interior_first": false})", kTemporal);
  EXPECT_FALSE(first.scheme.interior_first);
  EXPECT_EQ(first.scheme.sample_gpus, 8U);
  EXPECT_EQ(read_run_config(first.resolved, "test").resolved.dump(), first.resolved.dump());
  const RunConfig second = config(R"({"name": "spatial"})", R"({"model": "wavenet", "batch": 1, "layers": 3})");
  EXPECT_EQ(read_run_config(second.resolved, "test").resolved.dump(), second.resolved.dump());
}

TEST(SpatialConfig, RefusesWhatCannotBeSplit) {
  const auto temporal = [](const std::string& keys) {
    return R"({"model": "temporal_convolution", "channels": 8, )" + keys + "}";
  };
  const std::string good = R"("sequence": 64, "kernel": 3, "dilations": [1])";
  EXPECT_EQ(refusal(R"({"name": "spatial"})", temporal(good)), "");
  EXPECT_THAT(refusal(R"({"name": "ring_attention"})", temporal(good)),
              HasSubstr(R"(test: /scheme/name: expected "data_parallel" or "spatial")"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", R"({"model": "attention", "sequence": 64, "hidden": 64, "heads": 8})"),
              HasSubstr("test: /scheme/name: expected a scheme for attention, got \"spatial\""));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", R"({"model": "resnet50", "batch": 4})"), HasSubstr("/scheme/name"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", temporal(R"("sequence": 7, "kernel": 3, "dilations": [1])")),
              HasSubstr("test: /workload/sequence: expected enough steps that each of 8 GPUs has some, got 7"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", R"({"model": "wavenet", "batch": 1, "sequence": 6})"),
              HasSubstr("/workload/sequence"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", R"({"model": "wavenet", "batch": 1, "layers": 51})"),
              HasSubstr("test: /workload/layers: expected 0 (all) to 50, got 51"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", temporal(R"("sequence": 64, "kernel": 1, "dilations": [1])")),
              HasSubstr("/workload/kernel"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", temporal(R"("sequence": 64, "kernel": 3, "dilations": [0])")),
              HasSubstr("/workload/dilations"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", temporal(good + R"(, "block": "lstm")")), HasSubstr("/workload/block"));
  EXPECT_THAT(refusal(R"({"name": "spatial"})", temporal(good + R"(, "block": "wavenet")")),
              HasSubstr("skip_channels"));
  EXPECT_THAT(refusal(R"({"name": "spatial", "split": "zigzag"})", temporal(good)), HasSubstr("got \"split\""));
  EXPECT_THAT(refusal(R"({"name": "spatial", "sample_gpus": 3})", temporal(good)), HasSubstr("/scheme/sample_gpus"));
}

TEST(SpatialEndToEnd, RunsAndTellsValues) {
  const TemporaryFolder folder;
  const std::string file = folder
                               .write("c.json", R"({"system": "dgx-a100", "gpus": 4, "scheme": {"name": "spatial"},
      "workload": {"model": "temporal_convolution", "sequence": 2001, "channels": 64, "kernel": 3, "dilations": [2, 64],
      "layers": 2}})")
                               .string();
  const Ran values =
      weft("validate " + file + " --values --set workload.sequence=61 --set workload.channels=8", folder);
  EXPECT_EQ(values.code, 0) << values.errors;
  EXPECT_THAT(values.output, HasSubstr("1.convolution2.weight.grad"));
  EXPECT_THAT(values.output, HasSubstr("fits"));
  for (const char* fidelity : {"cycle", "sampled"}) {
    const Ran run = weft("run " + file + " --json --fidelity " + fidelity, folder);
    ASSERT_EQ(run.code, 0) << run.errors;
    const Json result = Json::parse(run.output);
    EXPECT_EQ(result["status"], "ok");
    EXPECT_GT(result["iteration"]["communication_s"], 0);
  }
}

TEST(SampleEndToEnd, RunsAndTellsValues) {
  const TemporaryFolder folder;
  const std::string file = folder
                               .write("a.json", R"({"system": "dgx-a100", "gpus": 4, "workload": {"model": "attention",
      "sequence": 509, "hidden": 256, "heads": 4, "causal": true}, "scheme": {"name": "ring_attention",
      "split": "striped"}})")
                               .string();
  const Ran values = weft("validate " + file + " --values", folder);
  EXPECT_EQ(values.code, 0) << values.errors;
  EXPECT_THAT(values.output, HasSubstr("key.weight.grad"));
  for (const char* scheme : {"ring_attention", "ring_self_attention", "single_sample", "context_parallel", "ulysses",
                             "ulysses_ring", "megatron", "data_parallel"}) {
    const Ran run = weft("run " + file + " -o out_" + scheme + " --json --set scheme.name=" + scheme, folder);
    ASSERT_EQ(run.code, 0) << scheme << run.errors;
    const Json result = Json::parse(run.output);
    EXPECT_EQ(result["status"], "ok");
    EXPECT_GT(result["iteration"]["communication_s"], 0) << scheme;
    EXPECT_LT(result["iteration"]["time_s"], 0.002) << scheme;
    const bool named = describe_run(result["config"]).find(scheme) != std::string::npos;
    EXPECT_EQ(named, std::string(scheme) != "data_parallel");
  }
}

TEST(SampleEndToEnd, ATransformerOfOneLayer) {
  const TemporaryFolder folder;
  const std::string file = folder
                               .write("t.json", R"({"system": "hgx-h100", "gpus": 2, "workload": {"model": "llama2-7b",
      "batch": 1, "sequence": 256, "layers": 1, "key_heads": 8}, "scheme": {"name": "ulysses"},
      "fidelity": "sampled"})")
                               .string();
  const Ran run = weft("validate " + file, folder);
  EXPECT_EQ(run.code, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("fits"));
  EXPECT_THAT(weft("validate " + file + " --set workload.layers=32", folder).output, HasSubstr("does not fit"));
}

}  // namespace
}  // namespace weft
