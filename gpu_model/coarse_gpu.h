// A GPU at a coarser grain: each line of the model stands for `grain` consecutive lines of the memory, and each
// transaction for as many. What those lines pass side by side, L2 slices and HBM channels, are fewer, each as fast as
// before; what they pass one after the other, ports of units, is as much slower; what holds lines holds as many fewer.
// So all queues fill and drain as before, in fewer and larger steps. For collectives by themselves, which stream long
// pieces: kernels read pieces that are too short.
#pragma once

#include <cstdint>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/l2_cache.h"

namespace weft {

// `grain`: a power of two, at most kCoarsestGrain. Engines and L1, which collectives on compute units do not use, stay
// as they are.
inline constexpr std::uint32_t kCoarsestGrain = 32;
[[nodiscard]] GpuSpec coarse(const GpuSpec& gpu, std::uint32_t grain);

// What an L2 holds whose lines stand for `grain` of the memory's, in one whose lines stand for `wanted`.
void copy_lines(const L2Cache& from, std::uint32_t grain, std::uint32_t wanted, L2Cache& to);

}  // namespace weft
