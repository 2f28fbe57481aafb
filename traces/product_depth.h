// How deep a matrix product is, K in C[m, n] = A[m, K] B[K, n], where no operator tells.
#pragma once

#include <cstdint>
#include <optional>

#include "traces/kernel_class.h"

namespace weft {

// Per compute unit, below what the slowest of the supported GPUs sustains, so that guesses stay low:
// memory: V100 900 GB/s / 80 units = 11 GB/s, A100 1555/108 = 14, MI300X 5300/304 = 17; seven tenths of the lowest.
inline constexpr double kBytesPerUnitSecond = 8e9;
// The most that HBM moves: A100 1555 GB/s / 108 units.
inline constexpr double kMostBytesPerUnitSecond = 14.4e9;

// What the pipe does in the kernel's time at a modest rate, but with A and B no more than memory moves beside C; in
// steps of powers of two and their halves, so that noise in the time changes little. Without a time, 256 on tensor
// cores and 64 else. `columns`: blocks side by side; `taps` as in ProductWork; `unit_seconds`: the kernel's time alone
// times the compute units that it had.
[[nodiscard]] double depth_from_time(const GemmTile& tile, std::uint64_t blocks, std::uint32_t columns, double taps,
                                     std::optional<double> unit_seconds);

}  // namespace weft
