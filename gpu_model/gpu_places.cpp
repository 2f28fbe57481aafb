// How blocks leave the units, and who comes in their place.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

namespace {
// Blocks of fewer rounds come and go all the time, none with another. UNSOURCED: how few.
constexpr std::uint32_t kManyRounds = 16;
// Who got its first operands sooner stays some rounds ahead: as good as together is within a 32nd of all rounds.
// UNSOURCED: the 32nd.
constexpr std::uint32_t kNearlyThrough = 32;
}  // namespace

// Blocks of one kernel that share the pipes of a unit go on side by side, instruction by instruction, and are through
// together, while those of two units drift apart. Here they take turns by whole rounds, so the first one would be
// through a round earlier, on all units at once, and blocks that wait would come to one unit each. Measured on an H200
// they come in pairs (docs/validation.md): products of FP32 with two blocks a unit take a whole wave for the last few.
bool Gpu::ends_with_neighbour(const Block& block) const {
  const RunningKernel& kernel = running_[block.kernel];
  if (!kernel.has_to_place() || kernel.communication || units_[block.unit].compute_blocks < 2) return false;
  const std::uint32_t rounds = kernel.program->rounds();
  if (!kernel.program->barrier() || rounds < kManyRounds) return false;
  return std::any_of(agents_.begin(), agents_.end(), [&](const Agent& other) {
    return !other.finished && other.kernel == block.kernel && other.unit == block.unit &&
           (other.phase_index > 0 || other.started + 1 + rounds / kNearlyThrough >= rounds);
  });
}

void Gpu::leave_unit(const Block& block) {
  left_.push_back(block);
  if (ends_with_neighbour(block)) return;
  const auto here =
      std::stable_partition(left_.begin(), left_.end(), [&](const Block& other) { return other.unit != block.unit; });
  const std::vector<Block> gone(here, left_.end());
  left_.erase(here, left_.end());
  account_unit(block.unit);
  Unit& unit = units_[block.unit];
  for (const Block& one : gone) {
    const RunningKernel& kernel = running_[one.kernel];
    unit.slots.release(kernel.needs);
    --(kernel.communication ? unit.communication_blocks : unit.compute_blocks);
    ++unit.company;
  }
  for (const Block& one : gone) dispatch_on(block.unit, one);
}

// Blocks have left the unit: kernels take the place in the order of priority and age. Where that is strict and the one
// that was first is through, those behind it may go anywhere.
void Gpu::dispatch_on(std::uint32_t unit, const Block& left) {
  bool first_is_through = false;
  for (const std::uint32_t slot : active_) {
    const RunningKernel& kernel = running_[slot];
    if (!kernel.waits_for_units()) continue;
    if (first_is_through) {
      place_anywhere(slot);
    } else if (kernel.cluster_blocks > 1) {
      while (kernel.has_to_place() && place_cluster(slot, order_.gpc_of[unit])) {
      }
    } else {
      while (kernel.has_to_place() && place_block(slot, unit, &left)) {
      }
    }
    if (!spec_.launch.blocks_in_order) continue;
    if (kernel.waits_for_units()) return;
    first_is_through = true;
  }
}

std::optional<UnplacedBlocks> Gpu::unplaced() const {
  for (const std::uint32_t slot : active_) {
    const RunningKernel& kernel = running_[slot];
    if (!kernel.communication || !kernel.waits_for_units() || is_resident(kernel.op)) continue;
    return UnplacedBlocks{kernel.op, kernel.launched - kernel.next_block, kernel.launched};
  }
  return std::nullopt;
}

// One that has just come in.
void Gpu::dispatch(std::uint32_t slot) {
  const auto own_place = std::find(active_.begin(), active_.end(), slot);
  const bool has_to_wait = spec_.launch.blocks_in_order && running_[slot].on_units &&
                           std::any_of(active_.begin(), own_place,
                                       [this](std::uint32_t other) { return running_[other].waits_for_units(); });
  if (!has_to_wait) place_anywhere(slot);
}

void Gpu::account_unit(std::uint32_t index) {
  Unit& unit = units_[index];
  const double held = to_seconds(clock_.to_time(now() - unit.accounted));
  unit.accounted = now();
  if (unit.communication_blocks > 0) {
    statistics_.unit_seconds_communication += held;
  } else if (unit.compute_blocks > 0) {
    statistics_.unit_seconds_compute += held;
  }
}

}  // namespace weft
