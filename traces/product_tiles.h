// The tiles of a product whose blocks stay and take one after the other, and how blocks of a cluster share them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/kernel_class.h"
#include "traces/operator_call.h"

namespace weft {

struct HopperTiles {
  std::uint32_t along_m = 1;  // of the tile's sides
  std::uint64_t pieces = 0;   // KernelDemand's
  std::uint32_t splits = 1;   // of the sum over K: so many blocks have the same tile and other parts of A and B
};

// Of products written for Hopper and newer (names as of persistent_product(), splits over K included), whose grid tells
// nothing of how their tiles lie. More tiles than blocks: these take several, unless they split; or fewer, where the
// grid is always that of the whole GPU (xmma), in whole clusters. Absent: others, or what is written is not known.
[[nodiscard]] std::optional<HopperTiles> hopper_tiles(std::string_view kernel, const ProductWork& work,
                                                      const GemmTile& tile, const LaunchShape& shape);

// Blocks of a cluster that fetch the same part of A (a tile's m) and of B (its n) together, by multicast: as the name
// says, else all of them the longer side.
[[nodiscard]] std::array<std::uint32_t, 2> sharers(std::string_view kernel, const GemmTile& tile,
                                                   std::uint32_t cluster_blocks);

}  // namespace weft
