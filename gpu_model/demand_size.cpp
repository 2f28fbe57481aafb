#include "gpu_model/demand_size.h"

#include <algorithm>

#include "gpu_model/occupancy.h"

namespace weft {

double bytes_of(const KernelDemand& kernel) {
  double bytes = 0;
  for (const auto* operands : {&kernel.reads, &kernel.writes}) {
    for (auto at = operands->begin(); at != operands->end(); ++at) {
      const Operand& operand = *at;
      if (std::find(operands->begin(), at, operand) != at) continue;  // once more: it comes from a cache
      std::uint64_t slices = (kernel.parts() + operand.divisor - 1) / operand.divisor;
      if (operand.modulo != 0) slices = std::min<std::uint64_t>(slices, operand.modulo);
      bytes += static_cast<double>(slices) * static_cast<double>(operand.bytes_per_block);
    }
  }
  return bytes;
}

std::uint64_t streamed_bytes(const KernelDemand& kernel) {
  std::uint64_t of_block = 0;
  for (const auto* operands : {&kernel.reads, &kernel.writes}) {
    for (const Operand& operand : *operands) of_block += operand.bytes_per_block / operand.shared_by;
  }
  return of_block * kernel.parts();
}

bool streams(const KernelDemand& kernel) {
  const auto own = [](const Operand& operand) { return operand.divisor == 1 && operand.modulo == 0; };
  return std::ranges::all_of(kernel.reads, own) && std::ranges::all_of(kernel.writes, own);
}

std::uint32_t blocks_on_a_unit(const KernelDemand& kernel, const GpuSpec& gpu) {
  const LaunchShape& shape = kernel.shape;
  return blocks_per_unit(gpu.compute_unit, block_needs(gpu.compute_unit, shape.threads_per_block(),
                                                       shape.registers_per_thread, shape.shared_memory_bytes));
}

}  // namespace weft
