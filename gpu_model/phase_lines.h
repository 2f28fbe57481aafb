// Helpers of those who write phases.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"

namespace weft {

// The lines that hold `bytes` from `address`.
inline LineStream lines(std::int64_t address, std::int64_t bytes, Target target = Target::local,
                        std::uint32_t gpu = 0) {
  LineStream stream;
  stream.first = static_cast<LineAddress>(address / kLineBytes);
  stream.lines = static_cast<std::uint32_t>((address + bytes - 1) / kLineBytes - address / kLineBytes + 1);
  stream.target = target;
  stream.gpu = static_cast<std::uint16_t>(gpu);
  return stream;
}

// Moves the lines of a phase in rounds of one warp's unrolled iteration (NCCL src/device/common_kernel.h, reduceCopy),
// up to `lines_per_round` of each stream, `warps` rounds in flight.
inline void set_rounds(Phase& phase, std::uint32_t lines_per_round, std::uint32_t warps) {
  std::uint32_t most = 1;
  for (std::size_t i = 0; i < phase.load_count; ++i) most = std::max(most, phase.loads[i].lines);
  for (std::size_t i = 0; i < phase.store_count; ++i) most = std::max(most, phase.stores[i].lines);
  phase.rounds = (most + lines_per_round - 1) / lines_per_round;
  phase.stages = warps;
}

// Of a compute unit.
inline double fp32_adds_per_cycle(const GpuSpec& gpu) {
  return gpu.compute_unit.flops_per_cycle[static_cast<std::size_t>(Pipe::fp32)] / 2;  // an FMA counts as two
}

// Pipe time of a round that adds `terms` values into one, for a warp's iteration of `lines_per_round`.
inline SubCycle adding_time(double adds_per_cycle, std::uint32_t lines_per_round, std::uint32_t terms) {
  if (terms < 2) return 0;
  constexpr double kAddsPerLine = static_cast<double>(kLineBytes) / sizeof(float);
  return cycles((terms - 1) * lines_per_round * kAddsPerLine / adds_per_cycle);
}

}  // namespace weft
