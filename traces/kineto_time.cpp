#include "traces/kineto_time.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace weft {

std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t'))
    text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (text.find_first_of("eE") != std::string_view::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) < 9e15)) return std::nullopt;
    return std::llround(value * 1000);
  }
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::int64_t value = 0;
  int fraction_digits = -1;
  bool round_up = false;
  for (const char c : text) {
    if (c == '.' && fraction_digits < 0) {
      fraction_digits = 0;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    if (fraction_digits == 3) round_up = c >= '5';
    if (fraction_digits >= 3) {
      fraction_digits = 4;
      continue;
    }
    if (value > std::int64_t{9'000'000'000'000'000'000} / 10) return std::nullopt;
    value = value * 10 + (c - '0');
    if (fraction_digits >= 0) ++fraction_digits;
  }
  for (int digits = std::max(fraction_digits, 0); digits < 3; ++digits) {
    if (value > std::int64_t{9'000'000'000'000'000'000} / 10) return std::nullopt;
    value *= 10;
  }
  if (round_up) ++value;
  return negative ? -value : value;
}

}  // namespace weft
