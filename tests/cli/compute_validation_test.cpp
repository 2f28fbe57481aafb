// The compute units and caches of the presets against their data sheets and published microbenchmarks: the roof of a
// GEMM, bandwidth of L1 and L2, latency of L1, speed of fused attention.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/config/run_config.h"
#include "cli/config/system_of.h"
#include "cli/run/programs.h"
#include "gpu_model/kernels_in_a_row.h"

namespace weft {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 28;

// The value goes into the test's report (--gtest_output).
void expect_between(const std::string& what, double value, double low, double high) {
  testing::Test::RecordProperty(what, fmt::format("{:.3f}", value));
  EXPECT_GE(value, low) << what;
  EXPECT_LE(value, high) << what;
}

double seconds_of_last(const GpuSpec& spec, const std::vector<KernelDemand>& kernels) {
  return to_seconds(time_of_last(spec, kernels));
}

// A product in FP16, two tiles for each unit.
KernelDemand gemm(const GpuSpec& spec, std::uint32_t tile_m, std::uint32_t tile_n, std::uint32_t tile_k) {
  constexpr std::uint64_t kDepth = 4096;
  constexpr std::uint32_t kColumns = 12;
  KernelDemand demand;
  demand.shape.grid = {kColumns, spec.compute_units * 2 / kColumns, 1};
  demand.iterations = static_cast<std::uint32_t>(kDepth) / tile_k;
  demand.write_at_end = true;
  demand.barrier = true;
  demand.reads = {{.base = kBase, .bytes_per_block = tile_m * kDepth * 2, .divisor = kColumns},
                  {.base = 2 * kBase, .bytes_per_block = tile_n * kDepth * 2, .modulo = kColumns}};
  demand.writes = {{.base = 3 * kBase, .bytes_per_block = std::uint64_t{tile_m} * tile_n * 2}};
  demand.flops[0] = 2.0 * tile_m * tile_n * kDepth * static_cast<double>(demand.shape.blocks());
  return demand;
}

// Of the best measured rate, which the preset has as that of its pipe.
double share_of_roof(const GpuSpec& spec, const KernelDemand& demand) {
  const double peak = spec.compute_unit.flops_per_cycle[0] * spec.compute_unit.pipe_efficiency[0] * spec.compute_units *
                      static_cast<double>(spec.clock.count());
  return demand.flops[0] / seconds_of_last(spec, {demand}) / peak;
}

// cutlass 256x128_32x3: threads, registers and shared memory of a profile.
KernelDemand ampere_gemm(const GpuSpec& spec) {
  KernelDemand demand = gemm(spec, 256, 128, 32);
  demand.shape.block = {256, 1, 1};
  demand.shape.registers_per_thread = 229;
  demand.shape.shared_memory_bytes = 73728;
  demand.stages = 3;
  return demand;
}

TEST(ComputeValidation, ALargeGemmReachesTheTensorRoof) {
  const GpuSpec a100 = preset_system("dgx-a100").gpu;
  expect_between("share", share_of_roof(a100, ampere_gemm(a100)), 0.92, 1);
}

// Tiles of Ampere's size ask all of H100's L2 for about what it gives. Its own kernels halve that: clusters of two
// blocks to which a panel is sent once, here a panel of half the bytes.
TEST(ComputeValidation, OnH100OnlyAGemmWithMulticastDoes) {
  const GpuSpec h100 = preset_system("hgx-h100").gpu;
  KernelDemand hopper = gemm(h100, 128, 256, 64);
  hopper.shape.block = {384, 1, 1};
  hopper.shape.registers_per_thread = 168;
  hopper.shape.shared_memory_bytes = 4 * (128 + 256) * 64 * 2;
  hopper.stages = 4;
  hopper.shape.cluster_blocks = 2;
  hopper.reads[1].bytes_per_block /= 2;
  expect_between("share", share_of_roof(h100, hopper), 0.92, 1);
  expect_between("share_without", share_of_roof(h100, ampere_gemm(h100)), 0.5, 0.75);
}

// Bytes a cycle of the whole GPU for a kernel that reads the same `footprint` again and again.
double bytes_per_cycle(const GpuSpec& spec, std::uint64_t bytes_per_block, std::uint32_t modulo, std::uint32_t passes) {
  KernelDemand demand;
  demand.shape.grid = {spec.compute_units * 2 * passes, 1, 1};
  demand.shape.block = {1024, 1, 1};
  demand.iterations = 16;
  demand.stages = 8;
  demand.reads = {{.base = kBase, .bytes_per_block = bytes_per_block, .modulo = modulo}};
  const double seconds =
      seconds_of_last(spec, {demand, demand, demand, demand});  // until both halves of L2 have copies
  return static_cast<double>(demand.shape.blocks() * bytes_per_block) / seconds /
         static_cast<double>(spec.clock.count());
}

// 128 B a cycle of a unit; measured: 99.5 to 125.8 for loads of 4 and 16 B on A100 and H100 (Luo et al., arXiv
// 2402.13499, not looked up again).
TEST(ComputeValidation, L1IsReadAtItsRate) {
  for (const char* system : {"dgx-a100", "hgx-h100"}) {
    const GpuSpec spec = preset_system(system).gpu;
    const double per_unit = bytes_per_cycle(spec, 16 << 10, 1, 60) / spec.compute_units;
    expect_between(system, per_unit, 99.5, 128);
  }
}

// 7026 GB/s as measured (traces/measured/h100_overlap.json), in cycles of 1830 MHz. Of two passes only, the start
// would be a part that shows.
TEST(ComputeValidation, L2IsReadAtItsRate) {
  GpuSpec spec = preset_system("hgx-h100").gpu;
  const std::uint64_t footprint = 16 << 20;
  const std::uint64_t per_block = 64 << 10;
  const double rate = bytes_per_cycle(spec, per_block, static_cast<std::uint32_t>(footprint / per_block), 4);
  expect_between("bytes_per_cycle", rate, 0.93 * 7026 / 1.83, 1.05 * 7026 / 1.83);
}

// Two blocks, one after the other on the only unit: the second one finds the line in L1.
TEST(ComputeValidation, L1AnswersWithinItsLatency) {
  for (const auto& [system, measured] : {std::pair("dgx-a100", 37.0), std::pair("hgx-h100", 39.0)}) {
    GpuSpec spec = preset_system(system).gpu;
    spec.compute_units = spec.gpcs = 1;
    spec.gpc_units.clear();
    const auto seconds = [&](std::uint32_t blocks) {
      KernelDemand demand;
      demand.shape.grid = {blocks, 1, 1};
      demand.shape.block = {32, 1, 1};
      demand.shape.shared_memory_bytes =
          spec.compute_unit.shared_memory_bytes - spec.compute_unit.reserved_shared_memory_bytes;
      demand.reads = {{.base = kBase, .bytes_per_block = 128, .modulo = 1}};
      return seconds_of_last(spec, {demand});
    };
    const double latency = (seconds(2) - seconds(1)) * static_cast<double>(spec.clock.count());
    expect_between(system, latency, measured * 0.9, measured * 1.1);
  }
}

struct Speed {
  double forward = 0, backward = 0;  // TFLOP/s as the paper counts: half of the scores under a causal mask
};

// 16 Ki tokens in sequences of 512, and 2048 wide, as in the paper.
Speed speed_of_attention(int head_size, bool causal) {
  const Json document{{"system", "hgx-h100"},
                      {"gpus", 1},
                      {"workload",
                       {{"model", "attention"},
                        {"sequence", 512},
                        {"batch", 32},
                        {"hidden", 2048},
                        {"heads", 2048 / head_size},
                        {"causal", causal}}},
                      {"scheme", {{"name", "data_parallel"}}}};
  const RunConfig config = read_run_config(document, "test.json");
  std::vector<std::string> notes;
  const std::vector<Program> programs = make_programs(config, notes);
  const auto seconds = [&](const ProgramOp& op) { return seconds_of_last(config.system.gpu, {op.kernel}); };
  double forward = 0, backward = 0;
  for (const ProgramOp& op : programs.at(0).ops) {
    if (op.name == "attention_forward") forward += seconds(op);
    if (op.name == "attention_row_products" || op.name == "attention_backward" || op.name == "convert_query_gradient") {
      backward += seconds(op);
    }
  }
  const double tera_operations = 4.0 * 512 * 512 * 2048 * 32 / (causal ? 2 : 1) / 1e12;
  return {tera_operations / forward, 2.5 * tera_operations / backward};
}

// FlashAttention-3 on an H100 (arXiv 2407.08608, figures 5 and 6). The preset's two efficiencies are fitted to
// sequences of 16 Ki with heads of 128; these are others.
TEST(AttentionValidation, ShortSequencesOnH100) {
  const Speed speed = speed_of_attention(128, false);
  expect_between("forward", speed.forward, 0.95 * 467, 1.05 * 467);
  expect_between("backward", speed.backward, 0.92 * 316, 1.08 * 316);
}

TEST(AttentionValidation, CausalMasksOnH100) {
  expect_between("forward", speed_of_attention(128, true).forward, 0.95 * 292, 1.05 * 292);
}

// Of heads of 64 the exponentials are as much as the products. By themselves, in an empty L2, kernels are 6 % faster
// here than in a layer.
TEST(AttentionValidation, OtherHeadsOnH100) {
  expect_between("backward", speed_of_attention(64, false).backward, 0.85 * 272, 1.15 * 272);
}

}  // namespace
}  // namespace weft
