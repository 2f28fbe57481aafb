// How deep a matrix product is, K in C[m, n] = A[m, K] B[K, n], where no operator tells.
#pragma once

#include <cstdint>
#include <optional>

#include "traces/kernel_class.h"

namespace weft {

// What the pipe does in the kernel's time at a modest rate, but with A and B no more than memory moves beside C; in
// steps of powers of two and their halves, so that noise in the time changes little. Without a time, 256 on tensor
// cores and 64 else. `columns`: blocks side by side; `taps` as in ProductWork; `unit_seconds`: the kernel's time alone
// times the compute units that it had.
[[nodiscard]] double depth_from_time(const GemmTile& tile, std::uint64_t blocks, std::uint32_t columns, double taps,
                                     std::optional<double> unit_seconds);

}  // namespace weft
