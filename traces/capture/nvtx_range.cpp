#include "traces/capture/nvtx_range.h"

#include <charconv>
#include <optional>

#include "traces/kineto_names.h"

namespace weft {
namespace {

constexpr std::string_view kModule = "nn.Module: ";

std::optional<std::string_view> iteration_number(std::string_view name) {
  const std::string words = lower(name);
  for (const std::string_view word : {"iteration", "step", "iter"}) {
    if (!words.starts_with(word)) continue;
    const std::size_t digits = words.find_first_not_of(" :#_", word.size());
    if (digits == std::string::npos) return std::nullopt;
    if (words.find_first_not_of("0123456789", digits) == std::string::npos) return name.substr(digits);
  }
  return std::nullopt;
}

}  // namespace

NvtxRange nvtx_range(std::string_view name) {
  NvtxRange range{KinetoCategory::annotation, std::string(name), -1};
  for (const std::string_view prefix : {kModule, std::string_view("layer: ")}) {
    if (!name.starts_with(prefix)) continue;
    range.category = KinetoCategory::module;
    range.name = std::string(kModule) + std::string(name.substr(prefix.size()));
    return range;
  }
  if (const auto number = iteration_number(name)) {
    range.name = "ProfilerStep#" + std::string(*number);
    return range;
  }
  const std::size_t comma = name.find(", seq = ");
  const std::string_view plain = name.substr(0, comma);
  if (comma != std::string_view::npos) {
    const char* digits = name.data() + comma + 8;
    std::from_chars(digits, name.data() + name.size(), range.sequence);
  }
  if (comma == std::string_view::npos && plain.find("::") == std::string_view::npos) return range;
  range.category = KinetoCategory::cpu_operator;
  range.name = std::string(plain.substr(0, plain.find(", op_id")));
  return range;
}

}  // namespace weft
