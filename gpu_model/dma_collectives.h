// Collectives that the GPU's DMA engines do: copy engines, and near-memory adders.
#pragma once

#include "gpu_model/collective_kernel.h"

namespace weft {

// As plan_collective(), of a GPU with engines. Throws InputError for what the wish's mover cannot do.
[[nodiscard]] CollectivePlan plan_on_dma_engines(const CollectiveContext& context, const CollectiveDemand& demand,
                                                 const CollectiveWish& wish, std::uint32_t first_flag);

}  // namespace weft
