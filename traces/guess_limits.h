// What guesses from a kernel's name and time hold to.
#pragma once

#include <cmath>

namespace weft {

// A kernel of one block that does nothing takes about 2 us in the traces given.
inline constexpr double kLaunchSeconds = 2e-6;
// A tensor is never guessed larger than this, in bytes: no time or name is a reason for more.
inline constexpr double kLargestTensor = 1e9;

// Per compute unit, below what the slowest of the supported GPUs sustains, so that guesses stay low:
// memory: V100 900 GB/s / 80 units = 11 GB/s, A100 1555/108 = 14, MI300X 5300/304 = 17; seven tenths of the lowest.
inline constexpr double kBytesPerUnitSecond = 8e9;
// The most that HBM moves: A100 1555 GB/s / 108 units.
inline constexpr double kMostBytesPerUnitSecond = 14.4e9;

// Down to a step, eight to an octave: kernels that come again with noise in their times are guessed to be the same.
[[nodiscard]] inline double in_steps(double seconds) { return std::exp2(std::floor(8 * std::log2(seconds)) / 8); }

}  // namespace weft
