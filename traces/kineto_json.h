// Fields of Kineto's events as simdjson reads them; for kineto_events.cpp only.
#pragma once

#include <simdjson.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace weft::kineto_json {

inline std::optional<std::int64_t> integer(simdjson::ondemand::object& o, std::string_view key) {
  simdjson::ondemand::value v;
  if (o[key].get(v) != simdjson::SUCCESS) return std::nullopt;
  std::int64_t value = 0;
  if (v.get_int64().get(value) == simdjson::SUCCESS) return value;
  // ROCm's arguments are text.
  std::string_view text;
  if (v.get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

inline std::string text(simdjson::ondemand::object& o, std::string_view key) {
  std::string_view value;
  if (o[key].get_string().get(value) != simdjson::SUCCESS) return {};
  return std::string(value);
}

// The elements of all tensors in "Input Dims": a list of sizes is a tensor, deeper lists hold tensors.
inline std::int64_t count_elements(simdjson::ondemand::array dims) {
  std::int64_t total = 0;
  std::int64_t product = 1;
  bool is_tensor = false;
  for (auto entry : dims) {
    simdjson::ondemand::value v = entry.value();
    if (v.type() == simdjson::ondemand::json_type::array) {
      total += count_elements(v.get_array());
      continue;
    }
    const std::int64_t size = v.get_int64();
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return 0;
    is_tensor = true;
  }
  return is_tensor ? total + product : total;
}

}  // namespace weft::kineto_json
