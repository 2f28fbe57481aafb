#include "cli/run/fitting_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_model/occupancy.h"

namespace weft {

void FittingBlocks::cut_block(LaunchShape& shape) {
  const ComputeUnitSpec& unit = gpu_->compute_unit;
  const auto fits = [&] {
    return blocks_per_unit(unit, block_needs(unit, shape.threads_per_block(), shape.registers_per_thread,
                                             shape.shared_memory_bytes)) > 0;
  };
  if (fits()) return;
  const LaunchShape recorded = shape;
  shape.shared_memory_bytes = std::min(shape.shared_memory_bytes, most_shared_memory(unit));
  shape.registers_per_thread =
      std::min(shape.registers_per_thread, most_registers_per_thread(unit, shape.threads_per_block()));
  if (!fits()) {
    shape = recorded;  // more threads than a unit has: refused where the kernel starts
    return;
  }
  ++blocks_;
}

bool FittingBlocks::cut_cluster(LaunchShape& shape) {
  if (shape.cluster_blocks == 1) return false;
  const std::uint32_t fits = cluster_that_fits(*gpu_, shape);
  if (fits == shape.cluster_blocks) return false;
  shape.cluster_blocks = fits;
  ++clusters_;
  return true;
}

void FittingBlocks::note(std::vector<std::string>& notes) const {
  if (blocks_ > 0) {
    notes.push_back(fmt::format(
        "Blocks of {} kernels ask for more shared memory or registers than a unit of {} has: each takes all of "
        "a unit.",
        blocks_, gpu_->name));
  }
  if (clusters_ > 0)
    notes.push_back(fmt::format("Clusters of thread blocks larger than those of {} are cut.", gpu_->name));
}

}  // namespace weft
