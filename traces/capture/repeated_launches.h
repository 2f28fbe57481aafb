// Iterations of a program that marks nothing: what it launches over and over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

// Launches [first + k * period, first + (k + 1) * period) are the same for all k < times.
struct Repetition {
  std::size_t first = 0;
  std::size_t period = 0;
  std::size_t times = 0;
};

// `launches`: numbers that are equal for equal kernels, in the order in which the host launched them; `pauses`: ns from
// the launch before to each. The repetition that covers most launches, of at least 16 launches, three times and a
// quarter of all; of the places where its period may begin the one with the longest pauses before it. nullopt: none.
// Time: n log n.
[[nodiscard]] std::optional<Repetition> repeated_launches(const std::vector<std::uint32_t>& launches,
                                                          const std::vector<std::int64_t>& pauses);

}  // namespace weft
