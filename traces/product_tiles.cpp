#include "traces/product_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

// No product of a training step has more.
constexpr double kMostTiles = 1e7;

struct Tiles {
  double along_m = 0, along_n = 0, batch = 1;
  [[nodiscard]] double count() const { return along_m * along_n * batch; }
};

// In the direction that takes fewer: names do not tell which side of a tile is which.
Tiles tiles_of(const ProductWork& work, const GemmTile& tile) {
  const Tiles one{std::ceil(work.rows / tile.m), std::ceil(work.columns / tile.n), work.batch};
  const Tiles other{std::ceil(work.columns / tile.m), std::ceil(work.rows / tile.n), work.batch};
  return other.count() < one.count() ? other : one;
}

// Whether a grid of so many blocks has one for each tile, clusters at an edge being whole.
bool fills(const Tiles& tiles, const LaunchShape& shape) {
  const double cluster = shape.cluster_blocks;
  const auto whole = [&](double n) { return std::ceil(n / cluster) * cluster; };
  const auto blocks = static_cast<double>(shape.blocks());
  return tiles.count() == blocks || whole(tiles.along_m) * tiles.along_n * tiles.batch == blocks ||
         tiles.along_m * whole(tiles.along_n) * tiles.batch == blocks;
}

}  // namespace

std::optional<HopperTiles> hopper_tiles(std::string_view kernel, const ProductWork& work, const GemmTile& tile,
                                        const LaunchShape& shape) {
  const bool fixed_grid = kernel.find("xmma") != std::string_view::npos;
  const bool stays = persistent_product(kernel).has_value();
  if (!stays && kernel.find("nvjet") == std::string_view::npos) return std::nullopt;
  // Sizes come from a trace: 0, negative, or such that these are no numbers.
  if (!(work.rows >= 1 && work.columns >= 1 && work.batch >= 1)) return std::nullopt;
  if (shape.blocks() > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  const Tiles tiles = tiles_of(work, tile);
  if (!(tiles.count() <= kMostTiles)) return std::nullopt;
  const bool one_each = fixed_grid ? fills(tiles, shape) : tiles.count() <= static_cast<double>(shape.blocks());
  HopperTiles out{static_cast<std::uint32_t>(tiles.along_m)};
  if (stays && !one_each) out.pieces = static_cast<std::uint64_t>(tiles.count());
  if (!stays)
    out.splits = static_cast<std::uint32_t>(std::max(1.0, static_cast<double>(shape.blocks()) / tiles.count()));
  return out;
}

std::array<std::uint32_t, 2> sharers(std::string_view kernel, const GemmTile& tile, std::uint32_t cluster_blocks) {
  // Blocks beside each other along n have the same rows of A.
  if (const auto sides = named_cluster(kernel); sides[0] * sides[1] == cluster_blocks) return {sides[1], sides[0]};
  if (tile.m >= tile.n) return {cluster_blocks, 1};
  return {1, cluster_blocks};
}

}  // namespace weft
