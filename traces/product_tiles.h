// The tiles of a product whose blocks stay and take one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "traces/kernel_class.h"
#include "traces/operator_call.h"

namespace weft {

struct ProductTiles {
  double rows = 0, columns = 0, batch = 1;
  [[nodiscard]] double count() const { return rows * columns * batch; }
};

// Of kernels with persistent_product(): more tiles than `blocks`, which then take several; or fewer, where the grid is
// always that of the whole GPU (xmma). Absent: as many, or what the product writes is not known.
[[nodiscard]] std::optional<ProductTiles> persistent_tiles(std::string_view kernel, const ProductWork& work,
                                                           const GemmTile& tile, std::uint64_t blocks);

}  // namespace weft
