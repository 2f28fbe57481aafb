// Kernels one after another on a GPU by itself: what measurements of memory and pipes are held against.
#pragma once

#include <vector>

#include "gpu_model/gpu.h"

namespace weft {

// How long the last one takes. Those before leave L2 and HBM as it finds them.
[[nodiscard]] Time time_of_last(const GpuSpec& spec, const std::vector<KernelDemand>& kernels);

}  // namespace weft
