#include "gpu_model/kernel_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"

namespace weft {

namespace {
// What a warp keeps in flight when its program does not stage whole rounds: four 16 B loads a thread, as unrolled
// streaming kernels have it (PyTorch's vectorized_elementwise_kernel loads 4 elements a thread, NCCL unrolls likewise).
constexpr std::uint32_t kLinesInFlightPerWarp = 16;
}  // namespace

KernelProgram::KernelProgram(const KernelDemand& demand, const GpuSpec& gpu, const std::string& name)
    : reads_(demand.reads),
      writes_(demand.writes),
      blocks_(demand.shape.blocks()),
      memory_scale_(demand.memory_scale),
      write_at_end_(demand.write_at_end && !demand.writes.empty()),
      needs_(block_needs(gpu.compute_unit, demand.shape.threads_per_block(), demand.shape.registers_per_thread,
                         demand.shape.shared_memory_bytes)),
      lines_in_flight_(needs_.threads / 32 * kLinesInFlightPerWarp),
      phases_(write_at_end_ ? 2 : 1),
      rounds_(std::max(demand.iterations, 1U)),
      stages_(std::max(demand.stages, 1U)) {
  if (blocks_per_unit(gpu.compute_unit, needs_) == 0) {
    throw InputError(
        fmt::format("kernel {}: expected a block that fits on a compute unit of {}, got {} threads, {} "
                    "registers a thread, {} B of shared memory",
                    name, gpu.name, demand.shape.threads_per_block(), demand.shape.registers_per_thread,
                    demand.shape.shared_memory_bytes));
  }
  if (reads_.size() > Phase::kMaxLoads || writes_.size() > Phase::kMaxStores) {
    throw InputError(fmt::format("kernel {}: expected at most {} operands read and {} written, got {} and {}", name,
                                 Phase::kMaxLoads, Phase::kMaxStores, reads_.size(), writes_.size()));
  }
  double block_cycles = 0;
  for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
    const double rate = gpu.compute_unit.flops_per_cycle[pipe] * gpu.compute_unit.pipe_efficiency[pipe];
    const double pipe_cycles = demand.flops[pipe] == 0 ? 0 : demand.flops[pipe] / static_cast<double>(blocks_) / rate;
    if (pipe_cycles > block_cycles) {
      block_cycles = pipe_cycles;
      pipe_ = static_cast<Pipe>(pipe);
    }
  }
  compute_ = cycles(block_cycles + demand.extra_cycles_per_block);
}

LineStream KernelProgram::stream(const Operand& operand, std::uint64_t block) const {
  std::uint64_t slice = block / operand.divisor;
  if (operand.modulo != 0) slice %= operand.modulo;
  const std::uint64_t begin = operand.base + slice * operand.bytes_per_block;
  const auto bytes =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(operand.bytes_per_block) * memory_scale_));
  LineStream lines;
  if (bytes == 0) return lines;
  const std::uint64_t last = begin + bytes - 1;
  lines.first = static_cast<LineAddress>(begin / kLineBytes);
  lines.lines = static_cast<std::uint32_t>(last / kLineBytes - begin / kLineBytes + 1);
  const auto first_sector = static_cast<std::uint32_t>(begin % kLineBytes / kSectorBytes);
  const auto last_sector = static_cast<std::uint32_t>(last % kLineBytes / kSectorBytes);
  lines.first_sectors = static_cast<std::uint8_t>(15U << first_sector & 15U);
  lines.last_sectors = static_cast<std::uint8_t>((2U << last_sector) - 1U);
  if (lines.lines == 1) lines.first_sectors = lines.last_sectors = lines.first_sectors & lines.last_sectors;
  // Only what several blocks read can hit in L1: a line that one block reads once cannot, so it need not be looked up.
  lines.through_l1 = operand.divisor > 1 || operand.modulo != 0;
  return lines;
}

Phase KernelProgram::phase(std::uint64_t block, std::uint32_t index) const {
  Phase phase;
  if (index == 0) {
    for (const Operand& operand : reads_) phase.load(stream(operand, block));
    phase.rounds = rounds_;
    phase.stages = stages_;
    phase.pipe = pipe_;
    phase.compute = compute_ / rounds_;
  }
  if (index == 1 || !write_at_end_) {
    for (const Operand& operand : writes_) phase.store(stream(operand, block));
  }
  return phase;
}

}  // namespace weft
