#include "traces/copy_shape.h"

#include <algorithm>

namespace weft {

LaunchShape copy_shape(Bytes bytes) {
  LaunchShape shape;
  shape.block[0] = 128;
  const std::int64_t per_block = 128 * 4 * 16;
  const std::int64_t blocks = std::max<std::int64_t>((bytes.count() + per_block - 1) / per_block, 1);
  shape.grid[0] = static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, 1 << 20));
  return shape;
}

}  // namespace weft
