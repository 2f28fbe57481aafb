#include "workloads/kernel_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/error.h"

namespace weft {
namespace {

// A round that moves less than eight lines costs the simulator more than it tells.
constexpr std::uint64_t kRoundBytes = 1024;
constexpr std::uint64_t kSectorBytes = 32;

struct Tile {
  std::uint32_t m, n, k_bytes, stages, threads, registers, shared_memory;
};

// Largest first. Shared memory is (m + n) * k_bytes * stages.
// cutlass wgrad 256x128_16x3, xmma dgrad 128x128x16_stage4, s1688gemm_256x64_16x4, dgrad 64x128_32x3,
// s1688gemm_64x64_16x6; FP16 kernels have the same bytes with twice the depth.
constexpr std::array<Tile, 6> kTensorTiles{{{256, 128, 64, 3, 256, 229, 73728},
                                            {128, 128, 64, 4, 128, 240, 65536},
                                            {256, 64, 64, 4, 128, 226, 81920},
                                            {128, 64, 128, 3, 128, 184, 73728},
                                            {64, 128, 128, 3, 128, 184, 73728},
                                            {64, 64, 64, 6, 128, 90, 49152}}};
// ampere_scudnn_128x64, cutlass_80_simt_sgemm_128x32_8x5 (its five stages hold 25600 B).
constexpr std::array<Tile, 2> kFp32Tiles{{{128, 64, 32, 2, 128, 160, 16384}, {128, 32, 32, 5, 128, 94, 25600}}};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t grid_of(const Tile& tile, const GemmShape& gemm) {
  return divide_up(gemm.m, tile.m) * divide_up(gemm.n, tile.n) * gemm.batch;
}

// With as many stages as fit a block's shared memory; fewer than two are none, since loads then wait for products.
bool fits(Tile& tile, std::uint32_t shared_memory) {
  if (shared_memory == 0 || tile.shared_memory <= shared_memory) return true;
  tile.stages = std::min(tile.stages, shared_memory / ((tile.m + tile.n) * tile.k_bytes));
  tile.shared_memory = (tile.m + tile.n) * tile.k_bytes * tile.stages;
  return tile.stages >= 2;
}

// So much longer than the output's longer side, K can be split over what large tiles leave free, as of weight
// gradients: a sum over a vocabulary, say. A choice, looked at with GPT-2's head only: no measured product is behind
// it.
constexpr std::int64_t kLongK = 8;

bool has_long_k(const GemmShape& gemm, GemmKind kind) {
  return kind == GemmKind::weight_gradient || (gemm.batch == 1 && gemm.k >= kLongK * std::max(gemm.m, gemm.n));
}

template <class Tiles>
Tile choose_tile(const Tiles& tiles, const GemmShape& gemm, GemmKind kind, std::uint32_t compute_units,
                 std::uint32_t shared_memory) {
  for (Tile tile : tiles) {
    const bool wasteful = tile.m >= 2 * gemm.m || tile.n >= 2 * gemm.n;
    if (wasteful || !fits(tile, shared_memory)) continue;
    if (has_long_k(gemm, kind) || grid_of(tile, gemm) >= std::int64_t{compute_units}) return tile;
  }
  Tile smallest = tiles.back();
  fits(smallest, shared_memory);
  return smallest;
}

// More blocks than CUDA's grids have go through the rest in a loop.
constexpr std::int64_t kMostBlocks = INT32_MAX;

std::uint32_t narrow(std::int64_t value) {
  WEFT_CHECK(value >= 0 && value <= std::int64_t{UINT32_MAX}, std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

}  // namespace

std::string GemmPlan::tile_name() const { return fmt::format("{}x{}", tile_m, tile_n); }

GemmPlan plan_gemm(const GemmShape& gemm, GemmKind kind, Pipe pipe, std::int64_t element_bytes,
                   std::uint32_t compute_units, std::uint32_t block_shared_memory) {
  WEFT_CHECK(gemm.m > 0 && gemm.n > 0 && gemm.k > 0 && gemm.batch > 0 && compute_units > 0, "empty GEMM");
  const Tile tile = pipe == Pipe::fp32 ? choose_tile(kFp32Tiles, gemm, kind, compute_units, block_shared_memory)
                                       : choose_tile(kTensorTiles, gemm, kind, compute_units, block_shared_memory);
  GemmPlan plan;
  plan.tile_m = tile.m;
  plan.tile_n = tile.n;
  plan.tile_k = narrow(std::int64_t{tile.k_bytes} / element_bytes);
  plan.rows = narrow(divide_up(gemm.m, tile.m));
  plan.columns = narrow(divide_up(gemm.n, tile.n));
  const std::int64_t all_rounds = divide_up(gemm.k, plan.tile_k);
  const std::int64_t grid = grid_of(tile, gemm);
  if (gemm.batch == 1 && grid * 2 <= std::int64_t{compute_units}) {
    plan.k_split = narrow(std::max<std::int64_t>(1, std::min(std::int64_t{compute_units} / grid, all_rounds / 8)));
  }
  plan.slices = narrow(gemm.batch * plan.k_split);
  plan.rounds = narrow(divide_up(all_rounds, plan.k_split));
  plan.stages = tile.stages;
  plan.shape.grid = {plan.columns, plan.rows, plan.slices};
  plan.shape.block = {tile.threads, 1, 1};
  plan.shape.registers_per_thread = tile.registers;
  plan.shape.shared_memory_bytes = tile.shared_memory;
  return plan;
}

TensorUse sliced(TensorId tensor, std::uint64_t offset, std::uint64_t bytes, std::uint64_t count, std::uint32_t divisor,
                 std::uint32_t modulo) {
  WEFT_CHECK(count > 0, "no slices");
  TensorUse use{tensor, offset, bytes / count, divisor, modulo};
  if (use.bytes_per_block < kSectorBytes) {
    use.bytes_per_block = std::min(bytes, kSectorBytes);
    const std::uint64_t sectors = use.bytes_per_block == 0 ? 1 : bytes / use.bytes_per_block;
    use.modulo = narrow(static_cast<std::int64_t>(modulo == 0 ? sectors : std::min<std::uint64_t>(sectors, modulo)));
  }
  return use;
}

TensorUse row_panels(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes) {
  return sliced(tensor, 0, bytes, std::uint64_t{plan.rows} * plan.slices, plan.columns);
}

TensorUse column_panels(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes, std::uint32_t distinct_columns) {
  const std::uint32_t columns = distinct_columns == 0 ? plan.columns : distinct_columns;
  const std::uint32_t panels = columns * plan.slices;
  if (columns == 1) return sliced(tensor, 0, bytes, panels, plan.rows * plan.columns);
  return sliced(tensor, 0, bytes, panels, 1, panels);
}

TensorUse output_tiles(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes) {
  return sliced(tensor, 0, bytes, plan.shape.blocks());
}

KernelNode gemm_kernel(const GemmPlan& plan, const GemmShape& gemm, Pipe pipe, std::vector<TensorUse> reads,
                       std::vector<TensorUse> writes) {
  KernelNode kernel;
  kernel.shape = plan.shape;
  std::uint64_t bytes = 0;
  for (const TensorUse& use : reads) bytes += use.bytes_per_block;
  kernel.iterations = narrow(std::clamp<std::int64_t>(static_cast<std::int64_t>(bytes / kRoundBytes), 1, plan.rounds));
  kernel.stages = plan.stages;
  kernel.reads = std::move(reads);
  kernel.writes = std::move(writes);
  kernel.flops[static_cast<std::size_t>(pipe)] = gemm.flops();
  kernel.write_at_end = true;
  kernel.barrier = true;
  return kernel;
}

StreamSpec elementwise_launch(std::int64_t elements) {
  StreamSpec spec;
  spec.blocks = static_cast<std::uint64_t>(std::clamp<std::int64_t>(divide_up(elements, 512), 1, kMostBlocks));
  spec.stages = 1;
  return spec;
}

StreamSpec channels_launch(std::int64_t rows, std::int64_t channels, std::int64_t element_bytes) {
  StreamSpec spec;
  const std::int64_t along_rows = std::clamp<std::int64_t>(divide_up(rows, 16 * 16), 1, 128);
  spec.blocks = static_cast<std::uint64_t>(divide_up(channels, 32) * along_rows);
  spec.threads = 512;
  spec.registers = 40;
  spec.round_bytes = static_cast<std::uint64_t>(512 * 4 * element_bytes);  // ELEMENTS_PER_ITER = 4
  return spec;
}

StreamSpec rows_launch(std::int64_t rows, std::uint32_t rows_per_block, std::uint32_t registers) {
  StreamSpec spec;
  spec.blocks = static_cast<std::uint64_t>(std::clamp<std::int64_t>(divide_up(rows, rows_per_block), 1, kMostBlocks));
  spec.registers = registers;
  spec.stages = 1;
  return spec;
}

KernelNode stream_kernel(const StreamSpec& spec, const std::vector<Streamed>& reads,
                         const std::vector<Streamed>& writes, double flops) {
  KernelNode kernel;
  kernel.shape.grid = {narrow(static_cast<std::int64_t>(spec.blocks)), 1, 1};
  kernel.shape.block = {spec.threads, 1, 1};
  kernel.shape.registers_per_thread = spec.registers;
  kernel.shape.shared_memory_bytes = spec.shared_memory;
  kernel.stages = spec.stages;
  kernel.flops[static_cast<std::size_t>(Pipe::fp32)] = flops;
  for (const Streamed& read : reads) {
    kernel.reads.push_back(sliced(read.tensor, read.offset, read.bytes, spec.blocks));
  }
  for (const Streamed& write : writes) {
    kernel.writes.push_back(sliced(write.tensor, write.offset, write.bytes, spec.blocks));
  }
  if (spec.round_bytes > 0) {
    const auto& first = kernel.reads.empty() ? kernel.writes : kernel.reads;
    const std::uint64_t bytes = first.empty() ? 0 : first.front().bytes_per_block;
    kernel.iterations = narrow(
        static_cast<std::int64_t>(std::max<std::uint64_t>(1, (bytes + spec.round_bytes - 1) / spec.round_bytes)));
  }
  return kernel;
}

}  // namespace weft
