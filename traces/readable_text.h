// Names from files of any kind, fit for JSON.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Profilers pass on what programs call things. Where that is not valid UTF-8, bytes beyond ASCII become '?'.
[[nodiscard]] std::string readable(std::string_view text);

}  // namespace weft
