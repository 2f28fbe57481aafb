#include "traces/product_depth.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "traces/guess_limits.h"

namespace weft {
namespace {

// FP32: V100 15.7 TFLOP/s / 80 = 196 GFLOP/s, A100 19.5/108 = 181; TF32: A100 156/108 = 1440 GFLOP/s; FP16: V100
// 125/80 = 1560 (NVIDIA data sheets). Four tenths of the lowest.
constexpr std::array<double, kPipeCount> kFlopsPerUnitSecond{0.6e12, 0.6e12, 0.07e12};  // by Pipe
constexpr double kDeepest = 8192;

}  // namespace

double depth_from_time(const GemmTile& tile, std::uint64_t blocks, std::uint32_t columns, double taps,
                       std::optional<double> unit_seconds) {
  double depth = tile.pipe == Pipe::fp32 ? 64 : 256;
  if (unit_seconds) {
    const double area = static_cast<double>(blocks) * tile.m * tile.n;
    const double rows = std::ceil(static_cast<double>(blocks) / columns);
    const double inputs_per_k = (tile.m * static_cast<double>(columns) / taps + tile.n * rows) * tile.element_bytes;
    depth = std::min(*unit_seconds * kFlopsPerUnitSecond[static_cast<std::size_t>(tile.pipe)] / (2 * area),
                     (*unit_seconds * kBytesPerUnitSecond - area * tile.element_bytes) / inputs_per_k);
  }
  depth = std::clamp(depth, static_cast<double>(tile.k), kDeepest);
  const double power = std::exp2(std::floor(std::log2(depth)));
  return power * 1.5 <= depth ? power * 1.5 : power;
}

}  // namespace weft
