// A system at a coarser grain (gpu_model/coarse_gpu.h), and what its network did, told of the real one.
#pragma once

#include <cstdint>

#include "cli/config/system_config.h"
#include "cli/sampled/regime.h"
#include "network/topology.h"

namespace weft {

// Packets of a link become trains of them. Lanes side by side between the same two become one, as fast as all, where
// all are alike; tables of switches and their adders go with the lanes.
[[nodiscard]] SystemSpec coarse(const SystemSpec& system, std::uint32_t gpus, std::uint32_t grain);

// Bytes, packets, sums as they are without the grain; `regime` was observed on `coarse`, and is of `real` then, which
// differs in the lanes of its cables.
void tell_finely(const Topology& coarse, const Topology& real, std::uint32_t grain, Regime& regime);

}  // namespace weft
