#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "sim/error.h"
#include "traces/json_stream.h"
#include "traces/trace_file.h"

namespace weft {

std::optional<std::uint32_t> recorded_world_size(const std::filesystem::path& file) {
  try {
    JsonStream stream(file);
    if (!stream.take_if('{')) return std::nullopt;
    std::string key;
    for (bool first = true; stream.next_key(first, key) && key != "ranks"; first = false) {
      const std::string_view value = stream.value();
      std::uint32_t ranks = 0;
      if (key != "world_size") continue;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ranks);
      if (error == std::errc() && end == value.data() + value.size() && ranks > 0) return ranks;
      return std::nullopt;
    }
  } catch (const InputError&) {  // read_trace() says what is wrong
  }
  return std::nullopt;
}

}  // namespace weft
