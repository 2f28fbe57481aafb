// A GPU of fewer units than a preset's, whose GPCs are then not those of a board.
#pragma once

#include <algorithm>

#include "gpu_model/gpu_spec.h"

namespace weft {

inline void give_units(GpuSpec& gpu, std::uint32_t units) {
  gpu.compute_units = units;
  gpu.gpc_units.clear();
  gpu.gpcs = std::min(units, 8U);
}

}  // namespace weft
