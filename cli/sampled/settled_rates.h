// How fast groups of warps go on, from how fast each was in two windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

struct SettledRates {
  std::vector<double> rates;  // by group
  double scatter = 0;         // what a kind's two windows differ by at most, as a share of their sum
};

// Groups of one kind do the same, some by fuller links than others. But a window is some rounds long, and by chance a
// group is through with more or fewer of them. So each has the mean of its kind, and as much of what it differs by as
// is more than two windows do. All by group, in any unit.
[[nodiscard]] SettledRates settled_rates(std::span<const std::uint64_t> kinds, std::span<const double> before,
                                         std::span<const double> last);

}  // namespace weft
