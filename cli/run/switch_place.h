// Where a switch stands in its plane: what its ports lead to.
#pragma once

#include <cstdint>

#include "network/switch.h"
#include "network/topology.h"

namespace weft {

// Of the hub `node`, a leaf or a spine.
[[nodiscard]] SwitchPlace switch_place(const Topology& topology, std::uint32_t node);

}  // namespace weft
