#include "gpu_model/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.h"

namespace weft {

namespace {
// CUDA's occupancy calculator, compute capability 7.0 to 10.0: warps of 32 threads; registers are given to a warp in
// units of 256, shared memory to a block in units of 128 B.
constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kRegisterUnit = 256;
constexpr std::uint32_t kSharedMemoryUnit = 128;

constexpr std::uint32_t round_up(std::uint32_t n, std::uint32_t unit) { return (n + unit - 1) / unit * unit; }
}  // namespace

BlockNeeds block_needs(const ComputeUnitSpec& unit, std::uint32_t threads, std::uint32_t registers_per_thread,
                       std::uint32_t shared_memory_bytes) {
  const std::uint32_t warps = (threads + kWarp - 1) / kWarp;
  BlockNeeds needs;
  needs.threads = warps * kWarp;
  needs.registers = warps * round_up(registers_per_thread * kWarp, kRegisterUnit);
  needs.shared_memory = round_up(shared_memory_bytes + unit.reserved_shared_memory_bytes, kSharedMemoryUnit);
  needs.carveout = unit.shared_memory_bytes;
  const std::uint32_t together = blocks_per_unit(unit, needs) * needs.shared_memory;
  for (const std::uint32_t kib : unit.shared_memory_carveouts_KiB) {
    if (kib * 1024 >= together) {
      needs.carveout = kib * 1024;
      break;
    }
  }
  return needs;
}

UnitSlots::UnitSlots(const ComputeUnitSpec& unit)
    : threads_(unit.max_threads),
      registers_(unit.registers),
      shared_memory_(unit.shared_memory_bytes),
      blocks_(unit.max_blocks),
      most_shared_memory_(unit.shared_memory_bytes),
      most_blocks_(unit.max_blocks) {}

bool UnitSlots::fits(const BlockNeeds& needs) const {
  const bool is_empty = blocks_ == most_blocks_;
  return needs.threads <= threads_ && needs.registers <= registers_ && needs.shared_memory <= shared_memory_ &&
         blocks_ > 0 && (is_empty || needs.carveout <= carveout_);
}

void UnitSlots::take(const BlockNeeds& needs) {
  if (blocks_ == most_blocks_) shared_memory_ = carveout_ = needs.carveout;
  threads_ -= needs.threads;
  registers_ -= needs.registers;
  shared_memory_ -= needs.shared_memory;
  --blocks_;
}

void UnitSlots::release(const BlockNeeds& needs) {
  threads_ += needs.threads;
  registers_ += needs.registers;
  shared_memory_ += needs.shared_memory;
  ++blocks_;
  if (blocks_ == most_blocks_) shared_memory_ = most_shared_memory_;
}

std::uint32_t UnitSlots::room(const BlockNeeds& needs) const {
  const bool is_empty = blocks_ == most_blocks_;
  if (!is_empty && needs.carveout > carveout_) return 0;
  std::uint32_t blocks = blocks_;
  if (needs.threads > 0) blocks = std::min(blocks, threads_ / needs.threads);
  if (needs.registers > 0) blocks = std::min(blocks, registers_ / needs.registers);
  if (needs.shared_memory > 0) blocks = std::min(blocks, shared_memory_ / needs.shared_memory);
  return blocks;
}

std::uint32_t blocks_per_unit(const ComputeUnitSpec& unit, const BlockNeeds& needs) {
  return UnitSlots(unit).room(needs);
}

std::uint32_t most_shared_memory(const ComputeUnitSpec& unit) {
  const std::uint32_t whole = unit.shared_memory_bytes / kSharedMemoryUnit * kSharedMemoryUnit;
  return whole - std::min(whole, unit.reserved_shared_memory_bytes);
}

std::uint32_t most_registers_per_thread(const ComputeUnitSpec& unit, std::uint32_t threads) {
  const std::uint32_t of_warp = unit.registers / std::max(1U, (threads + kWarp - 1) / kWarp);
  return of_warp / kRegisterUnit * kRegisterUnit / kWarp;
}

BlockNeeds needs_that_fit(const GpuSpec& gpu, std::string_view whose, std::uint32_t threads,
                          std::uint32_t registers_per_thread, std::uint32_t shared_memory_bytes) {
  const BlockNeeds needs = block_needs(gpu.compute_unit, threads, registers_per_thread, shared_memory_bytes);
  if (blocks_per_unit(gpu.compute_unit, needs) == 0) {
    throw InputError(
        fmt::format("{}: expected a block that fits on a compute unit of {}, got {} threads, {} registers a thread, "
                    "{} B of shared memory",
                    whose, gpu.name, threads, registers_per_thread, shared_memory_bytes));
  }
  return needs;
}

std::uint32_t first_unit_of_gpc(const GpuSpec& gpu, std::uint32_t gpc) {
  if (!gpu.gpc_units.empty()) return std::accumulate(gpu.gpc_units.begin(), gpu.gpc_units.begin() + gpc, 0U);
  const std::uint32_t together = gpu.compute_units % 2 == 0 ? 2 : 1;
  return gpu.compute_units / together * gpc / gpu.gpcs * together;
}

std::vector<std::uint32_t> units_in_order(const GpuSpec& gpu) {
  std::vector<std::uint32_t> order(gpu.compute_units);
  std::iota(order.begin(), order.end(), 0U);
  if (gpu.gpc_units.empty()) return order;
  struct Turn {
    bool whole_gpc;
    std::uint32_t second_of_pair, round;
    auto operator<=>(const Turn&) const = default;
  };
  std::vector<Turn> turns;
  for (const std::uint32_t units : gpu.gpc_units) {
    for (std::uint32_t u = 0; u < units; ++u) turns.push_back({units > 2, u % 2, u / 2});
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return turns[a] < turns[b]; });
  return order;
}

std::uint32_t most_cluster_blocks(const GpuSpec& gpu, const BlockNeeds& needs) {
  std::uint32_t units = 0;
  for (std::uint32_t gpc = 0; gpc < gpu.gpcs; ++gpc) {
    units = std::max(units, first_unit_of_gpc(gpu, gpc + 1) - first_unit_of_gpc(gpu, gpc));
  }
  return std::min(gpu.max_cluster_blocks, units * blocks_per_unit(gpu.compute_unit, needs));
}

std::uint32_t cluster_that_fits(const GpuSpec& gpu, const LaunchShape& shape) {
  const BlockNeeds needs =
      block_needs(gpu.compute_unit, shape.threads_per_block(), shape.registers_per_thread, shape.shared_memory_bytes);
  std::uint32_t blocks = std::min(shape.cluster_blocks, std::max(1U, most_cluster_blocks(gpu, needs)));
  while (shape.cluster_blocks % blocks != 0) --blocks;
  return blocks;
}

}  // namespace weft
