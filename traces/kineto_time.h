// Times as Kineto writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

// A JSON number (or a number as a string) of microseconds -> whole nanoseconds, rounded. Exact: a double has not the
// digits of a new file's times. nullopt when it is no number or beyond 2^63 ns.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of(std::string_view token);

}  // namespace weft
