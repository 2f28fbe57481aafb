// Copies within the GPU and memsets as kernels.
#pragma once

#include "sim/program.h"
#include "sim/units.h"

namespace weft {

// The launch that stands for a copy within the GPU or a memset of `bytes`: 128 threads a block, each with four vectors
// of 16 B, as PyTorch's vectorized kernels move memory; the driver's own grid is not recorded.
[[nodiscard]] LaunchShape copy_shape(Bytes bytes);

}  // namespace weft
