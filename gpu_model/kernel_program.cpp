#include "gpu_model/kernel_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/error.h"

namespace weft {

namespace {
// What a warp keeps in flight when its program does not stage whole rounds: four 16 B loads a thread, as unrolled
// streaming kernels have it (PyTorch's vectorized_elementwise_kernel loads 4 elements a thread, NCCL unrolls likewise).
constexpr std::uint32_t kLinesInFlightPerWarp = 16;
constexpr std::uint32_t kWarp = 32;
// Operations of a warp's instruction, by Pipe: mma.m16n8k16 of FP16 and m16n8k8 of TF32 (PTX ISA; Hopper's wgmma has
// more), a fused multiply-add of two in each of 32 lanes, a special function in each.
constexpr std::array<double, kPipeCount> kOperationsPerInstruction{4096, 2048, 64, 64, 32};
// A memory instruction moves 16 B a lane.
constexpr double kLinesPerInstruction = 4;
constexpr std::array<Slot, kPipeCount> kSlotOf{Slot::tensor, Slot::tensor, Slot::fp32, Slot::fp64, Slot::sfu};

double efficiency(const ComputeUnitSpec& unit, AttentionPass pass, std::size_t pipe) {
  double of_pass = 0;
  if (kSlotOf[pipe] == Slot::tensor) {
    if (pass == AttentionPass::forward) of_pass = unit.attention_efficiency.forward;
    if (pass == AttentionPass::backward) of_pass = unit.attention_efficiency.backward;
  }
  return of_pass > 0 ? of_pass : unit.pipe_efficiency[pipe];
}
}  // namespace

KernelProgram::KernelProgram(const KernelDemand& demand, const GpuSpec& gpu, const std::string& name,
                             const PushedOutput* pushed)
    : reads_(demand.reads),
      writes_(demand.writes),
      pushed_(pushed),
      launched_(demand.shape.blocks()),
      blocks_(demand.parts()),
      piece_order_(demand.piece_order),
      cluster_blocks_(demand.shape.cluster_blocks),
      memory_scale_(demand.memory_scale),
      write_at_end_(demand.write_at_end && !demand.writes.empty()),
      barrier_(demand.barrier),
      bulk_loads_(demand.bulk_loads),
      needs_(needs_that_fit(gpu, fmt::format("kernel {}", name), demand.shape.threads_per_block(),
                            demand.shape.registers_per_thread, demand.shape.shared_memory_bytes)),
      warps_(needs_.threads / kWarp),
      lines_in_flight_(warps_ * kLinesInFlightPerWarp),
      phases_(write_at_end_ ? 2 : 1),
      rounds_(std::max(demand.iterations, 1U)),
      stages_(std::max(demand.stages, 1U)) {
  const std::uint32_t most = most_cluster_blocks(gpu, needs_);
  if (cluster_blocks_ == 0 || cluster_blocks_ > most || launched_ % cluster_blocks_ != 0) {
    throw InputError(fmt::format("kernel {}: expected clusters of at most {} blocks that divide the grid of {}, got {}",
                                 name, most, launched_, cluster_blocks_));
  }
  if (reads_.size() > Phase::kMaxLoads || writes_.size() > Phase::kMaxStores) {
    throw InputError(fmt::format("kernel {}: expected at most {} operands read and {} written, got {} and {}", name,
                                 Phase::kMaxLoads, Phase::kMaxStores, reads_.size(), writes_.size()));
  }
  if (pushed_ != nullptr) {
    const std::uint64_t parts = (pushed_->lines / blocks_ + 1) / pushed_->part_lines() + 2;  // of a block
    if (writes_.size() - 1 + parts > Phase::kMaxStores) {
      throw InputError(
          fmt::format("kernel {}: expected blocks that each have a few of the {} parts that it reduces, "
                      "got {} blocks",
                      name, pushed_->parts, blocks_));
    }
  }
  if (bulk_loads_) {
    std::uint64_t lines = 0;
    for (const Operand& operand : reads_) lines += stream(operand, 0).lines;
    lines_in_flight_ = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(lines_in_flight_, std::min(lines, lines * stages_ / rounds_)));
  }
  set_work(demand, gpu.compute_unit);
}

// Of a round, on each sub-partition that holds warps of the block. Memory instructions alone need no slots: the unit's
// port takes four times as long for them.
void KernelProgram::set_work(const KernelDemand& demand, const ComputeUnitSpec& unit) {
  const double schedulers = unit.schedulers;
  const double share = schedulers / std::min<double>(warps_, schedulers) / static_cast<double>(blocks_) / rounds_;
  std::array<double, kSlotCount> work{};
  double instructions = 0;
  for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
    if (demand.flops[pipe] == 0) continue;
    const double rate = unit.flops_per_cycle[pipe] * efficiency(unit, demand.attention, pipe);
    work[static_cast<std::size_t>(kSlotOf[pipe])] += demand.flops[pipe] * share / rate;
    instructions += demand.flops[pipe] / kOperationsPerInstruction[pipe];
  }
  if (instructions > 0) {
    for (const auto* operands : {&reads_, &writes_}) {
      for (const Operand& operand : *operands) {
        const double bytes = static_cast<double>(operand.bytes_per_block) * memory_scale_;
        instructions += bytes / kLineBytes / kLinesPerInstruction * static_cast<double>(blocks_);
      }
    }
  }
  if (demand.instructions > 0) instructions = demand.instructions;
  work[static_cast<std::size_t>(Slot::issue)] = instructions * share / schedulers;
  // Measured times of fused attention with heads of 64, 128 and 256 are those of its products and its exponentials
  // together (docs/validation.md): what is between products is not hidden behind those of other warps.
  double& products = work[static_cast<std::size_t>(Slot::tensor)];
  if (demand.attention != AttentionPass::none && products > 0) {
    double between = 0;
    for (const Slot pipe : {Slot::fp32, Slot::fp64, Slot::sfu}) {
      between = std::max(between, work[static_cast<std::size_t>(pipe)]);
    }
    products += between;
  }
  // Of equal ones a pipe, which is what takes the time where it issues every cycle.
  auto busiest = static_cast<std::size_t>(Slot::fp32);
  for (std::size_t slot = kSlotCount; slot-- > 0;) {
    if (work[slot] > work[busiest]) busiest = slot;
  }
  const double extra = demand.extra_cycles_per_block / rounds_;
  if (!demand.extra_waits) work[busiest] += extra;
  busiest_ = static_cast<Slot>(busiest);
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) work_[slot] = cycles(work[slot]);
  if (!demand.extra_waits || extra == 0) return;
  latency_ = cycles(extra);
  work_[busiest] = std::max<SubCycle>(work_[busiest], 1);  // a round that computes nothing takes no time
}

LineStream KernelProgram::stream(const Operand& operand, std::uint64_t block) const {
  std::uint64_t slice = block / operand.divisor;
  if (operand.modulo != 0) slice %= operand.modulo;
  const auto bytes =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(operand.bytes_per_block) * memory_scale_));
  // Scaled up, slices do not overlap.
  const std::uint64_t part = block / operand.shared_divisor % operand.shared_by;
  const std::uint64_t begin =
      operand.base + slice * std::max(operand.bytes_per_block, bytes) + bytes * part / operand.shared_by;
  const std::uint64_t own = bytes * (part + 1) / operand.shared_by - bytes * part / operand.shared_by;
  LineStream lines;
  if (own == 0) return lines;
  const std::uint64_t last = begin + own - 1;
  lines.first = static_cast<LineAddress>(begin / kLineBytes);
  lines.lines = static_cast<std::uint32_t>(last / kLineBytes - begin / kLineBytes + 1);
  const auto first_sector = static_cast<std::uint32_t>(begin % kLineBytes / kSectorBytes);
  const auto last_sector = static_cast<std::uint32_t>(last % kLineBytes / kSectorBytes);
  lines.first_sectors = static_cast<std::uint8_t>(15U << first_sector & 15U);
  lines.last_sectors = static_cast<std::uint8_t>((2U << last_sector) - 1U);
  if (lines.lines == 1) lines.first_sectors = lines.last_sectors = lines.first_sectors & lines.last_sectors;
  // What is fetched for all of them comes to each of them.
  lines.copies = static_cast<std::uint8_t>(operand.shared_by - 1);
  // Only what several blocks read can hit in L1: a line that one block reads once cannot, so it need not be looked up.
  lines.atomic = operand.atomic;
  lines.through_l1 = !bulk_loads_ && !operand.atomic && (operand.divisor > 1 || operand.modulo != 0);
  return lines;
}

// Whole lines, so that each is one contribution: where blocks share one, the first of them has it.
void KernelProgram::push(std::uint64_t block, Phase& phase) const {
  const std::uint32_t part = pushed_->part_lines();
  const auto end = static_cast<std::uint32_t>(pushed_->lines * (block + 1) / blocks_);
  for (auto at = static_cast<std::uint32_t>(pushed_->lines * block / blocks_); at < end;) {
    const std::uint32_t index = at / part;
    LineStream sums;
    sums.first = pushed_->sums + at % part;
    sums.lines = std::min(end, (index + 1) * part) - at;
    sums.gpu = static_cast<std::uint16_t>(pushed_->multicast_group + index);
    sums.target = Target::multicast;
    sums.adds = true;
    sums.arrival_flag = pushed_->flag;
    phase.store(sums);
    at += sums.lines;
  }
}

std::uint64_t KernelProgram::alike_after(std::uint64_t first, std::uint64_t end, std::uint64_t most) const {
  std::uint64_t largest = 1;  // so many blocks share a slice
  for (const auto* operands : {&reads_, &writes_}) {
    for (const Operand& operand : *operands) largest = std::max(largest, std::uint64_t{operand.divisor});
  }
  std::uint64_t period = cluster_blocks_;  // of all others
  for (const auto* operands : {&reads_, &writes_}) {
    for (const Operand& operand : *operands) {
      if (operand.divisor != largest) period = std::lcm(period, std::uint64_t{operand.divisor});
      if (period > most) return 0;
    }
  }
  if (const std::uint64_t whole = std::lcm(period, largest); whole <= most) return most - most % whole;
  // So near, only blocks that all share one slice of the largest now, and then again.
  const auto share_one = [&](std::uint64_t later) { return (first + later) / largest == (end - 1 + later) / largest; };
  if (!share_one(0)) return 0;
  std::uint64_t after = most;
  if (!share_one(after)) after -= std::min(after, (end + after) % largest);
  after -= after % period;
  return share_one(after) ? after : 0;
}

Phase KernelProgram::phase(std::uint64_t block, std::uint32_t index) const {
  Phase phase;
  if (block >= blocks_) return phase;
  if (index == 0) {
    for (const Operand& operand : reads_) phase.load(stream(operand, block));
    phase.rounds = rounds_;
    phase.stages = stages_;
    phase.busiest = busiest_;
    phase.compute = work_[static_cast<std::size_t>(busiest_)];
    phase.beside = work_;
    phase.beside[static_cast<std::size_t>(busiest_)] = 0;
    phase.barrier = barrier_;
    phase.latency = latency_;
  }
  if (index == 1 || !write_at_end_) {
    for (const Operand& operand : writes_) {
      if (pushed_ != nullptr && operand.base == pushed_->address) {
        push(block, phase);
        continue;
      }
      LineStream stored = stream(operand, block);
      stored.through_l1 = false;
      phase.store(stored);
    }
  }
  return phase;
}

}  // namespace weft
