// What the GPU probe's suite `cache` measured of the L2, and what a system's model has.
#pragma once

#include "gpu_model/gpu_spec.h"
#include "sim/json_reader.h"

namespace weft {

void print_cache(const Json& probe, const GpuSpec& spec);

}  // namespace weft
