// What a launch costs, and when the blocks of a kernel begin.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/gpu/device/gpu.h"

namespace weft::gpu_probe {

[[nodiscard]] nlohmann::json launch_costs(Gpu& gpu);

}  // namespace weft::gpu_probe
