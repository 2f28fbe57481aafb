// Collectives of some GPUs, in a cluster or behind one level of switches: which groups are worth which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program.h"

namespace weft {

// Why GPUs do not share each collective of `front` with GPUs at the places of those that the first one shares it with:
// all, some of one node, or one of each node at the same place. In words; empty: they do. `front` is the first program,
// perhaps with fewer collectives; nodes have `per_node` GPUs.
[[nodiscard]] std::string why_groups_differ(const Program& front, const std::vector<Program>& programs,
                                            std::uint32_t per_node);

// Behind one level of switches any group of some GPUs of a node is worth the first so many. Groups that were others are
// one then, so its collectives are counted anew.
[[nodiscard]] Program with_first_groups(Program program, std::size_t gpus, std::uint32_t per_node);

}  // namespace weft
