// Collectives that switches reduce: whether they can, and what the ranks do then.
#pragma once

#include "gpu_model/collective_kernel.h"

namespace weft {

[[nodiscard]] std::uint32_t lines_per_round(const CollectiveSpec& library);

// Throws InputError where `algorithm` asks for an all-reduce in switches that cannot be.
[[nodiscard]] bool in_switch_is_possible(const CollectiveContext& context, const CollectiveDemand& demand,
                                         AllReduceAlgorithm algorithm, bool registered);

// `warps`: of a block, where buffers are registered. Counters first_flag ... are its own.
[[nodiscard]] CollectivePlan plan_in_switch(const CollectiveContext& context, const CollectiveDemand& demand,
                                            const CollectiveWish& wish, bool registered, std::uint32_t channels,
                                            std::uint32_t warps, std::uint32_t first_flag);

}  // namespace weft
