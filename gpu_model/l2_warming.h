// What kernels leave in an L2, without simulating them.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "gpu_model/kernel_program.h"
#include "gpu_model/l2_cache.h"

namespace weft {

// Blocks that run at once on an idle GPU.
[[nodiscard]] std::uint64_t resident_blocks(const GpuSpec& gpu, const KernelProgram& kernel);

// Blocks [first, end), `resident` of them at once, which go through their rounds together. Lines that several of these
// share are touched by the first of them only. The stores of the last `storing` blocks are still on their way.
// `slices`: see L2Cache::touch.
L2Cache::Touched touch_blocks(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end,
                              std::uint64_t resident, L2Cache& l2, std::uint64_t storing = 0,
                              std::uint32_t slices = L2Cache::kAllSlices);

// The GPU's TLB holds the pages of what the kernel reads and writes. They are under way until L2Cache::rest().
void touch_pages(const KernelProgram& kernel, const TlbSpec& tlb, L2Cache& l2);

// Slices of operands that have been counted, by their first line.
using CountedSlices = std::unordered_set<LineAddress>;

// The last blocks of [first, end) that touch `bytes` together which are not in `counted` yet, or all: the first of
// them. `bytes` is lowered by what they touch.
[[nodiscard]] std::uint64_t last_blocks_of(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end,
                                           std::int64_t& bytes, CountedSlices& counted);

// The first block that an L2 need be told of those before `end`, `resident` of them at once: with it they touch
// `bytes`.
[[nodiscard]] std::uint64_t first_told(const KernelProgram& kernel, std::uint64_t end, std::uint64_t resident,
                                       std::int64_t bytes);

}  // namespace weft
