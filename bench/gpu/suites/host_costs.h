#pragma once

#include <nlohmann/json.hpp>

#include "bench/gpu/device/gpu.h"

namespace weft::gpu_probe {

// Memory of the host as the GPU sees it: latency, LL's loads and stores, the way there and back; and what fences cost
// behind stores to either memory.
nlohmann::json host_costs(Gpu& gpu);

}  // namespace weft::gpu_probe
