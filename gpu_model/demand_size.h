// What a kernel's demand comes to as a whole.
#pragma once

#include "gpu_model/gpu_spec.h"

namespace weft {

// Of all its operands, each slice once, and once where it is read again and again.
[[nodiscard]] double bytes_of(const KernelDemand& kernel);
// What the L2 is asked for by all blocks together.
[[nodiscard]] std::uint64_t streamed_bytes(const KernelDemand& kernel);
// Whether each block has operands of its own: nothing is read for several of them.
[[nodiscard]] bool streams(const KernelDemand& kernel);
// Of its blocks, on an empty unit; 0 when not even one fits.
[[nodiscard]] std::uint32_t blocks_on_a_unit(const KernelDemand& kernel, const GpuSpec& gpu);

}  // namespace weft
