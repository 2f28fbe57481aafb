#include "traces/product_tiles.h"

#include <cmath>

namespace weft {
namespace {

// No product of a training step has more.
constexpr double kMostTiles = 1e7;

// In the direction that takes fewer: names do not tell which side of a tile is which.
ProductTiles tiles_of(const ProductWork& work, const GemmTile& tile) {
  const ProductTiles one{std::ceil(work.rows / tile.m), std::ceil(work.columns / tile.n), work.batch};
  const ProductTiles other{std::ceil(work.rows / tile.n), std::ceil(work.columns / tile.m), work.batch};
  return other.count() < one.count() ? other : one;
}

}  // namespace

std::optional<ProductTiles> persistent_tiles(std::string_view kernel, const ProductWork& work, const GemmTile& tile,
                                             std::uint64_t blocks) {
  if (!persistent_product(kernel) || work.rows == 0) return std::nullopt;
  const ProductTiles tiles = tiles_of(work, tile);
  const auto launched = static_cast<double>(blocks);
  const bool fixed_grid = kernel.find("xmma") != std::string_view::npos;
  if (tiles.count() > kMostTiles || (fixed_grid ? tiles.count() == launched : tiles.count() <= launched))
    return std::nullopt;
  return tiles;
}

}  // namespace weft
