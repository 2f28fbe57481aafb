// What kernels leave in an L2, without simulating them.
#pragma once

#include <cstdint>

#include "gpu_model/kernel_program.h"
#include "gpu_model/l2_cache.h"

namespace weft {

// Lines that several blocks share are touched by the first of them only.
void touch_blocks(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end, L2Cache& l2);

// The last blocks of [first, end) that touch `bytes` together, or all: the first of them. `bytes` is lowered by what
// they touch.
[[nodiscard]] std::uint64_t last_blocks_of(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end,
                                           std::int64_t& bytes);

}  // namespace weft
