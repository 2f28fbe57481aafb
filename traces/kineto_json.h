// Fields of Kineto's events as simdjson reads them; for kineto_events.cpp only.
#pragma once

#include <simdjson.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "traces/kineto_names.h"
#include "traces/operator_call.h"

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

// "Input Dims" as sizes; deeper lists are lists of tensors, which count as one input each. False when an entry is no
// size.
inline bool read_sizes(simdjson::ondemand::array dims, std::vector<OperatorInput>& inputs) {
  for (auto entry : dims) {
    simdjson::ondemand::array list;
    if (entry.get_array().get(list) != simdjson::SUCCESS || inputs.size() >= kMostInputs) return false;
    OperatorInput input;
    bool holds_tensors = false;
    double product = 1;
    for (auto value : list) {
      simdjson::ondemand::value v = value.value();
      if (v.type() == simdjson::ondemand::json_type::array) {
        OperatorInput& element = inputs.emplace_back();
        holds_tensors = true;
        for (auto size : v.get_array()) {
          std::int64_t n = 0;
          if (size.get_int64().get(n) != simdjson::SUCCESS || n < 0) return false;
          element.sizes.push_back(n);
        }
        if (elements(element) > static_cast<double>(kMostElements)) return false;
        continue;
      }
      std::int64_t n = 0;
      if (v.get_int64().get(n) != simdjson::SUCCESS || n < 0) return false;
      input.sizes.push_back(n);
      product *= static_cast<double>(n);
    }
    if (product > static_cast<double>(kMostElements)) return false;
    if (!holds_tensors) inputs.push_back(std::move(input));
  }
  return true;
}

// "Input Dims" with "Input type". Sizes that do not hold together are as good as none: only a better guess depends on
// them.
inline std::vector<OperatorInput> operator_inputs(simdjson::ondemand::object& args) {
  std::vector<OperatorInput> inputs;
  simdjson::ondemand::array list;
  if (args["Input Dims"].get_array().get(list) != simdjson::SUCCESS || !read_sizes(list, inputs)) return {};
  if (args["Input type"].get_array().get(list) != simdjson::SUCCESS) return inputs;
  std::size_t index = 0;
  for (auto entry : list) {
    std::string_view word;
    const bool is_text = entry.get_string().get(word) == simdjson::SUCCESS;
    if (index >= inputs.size()) break;
    const std::optional<DataType> type = is_text ? collective_type(word) : std::nullopt;
    if (type) inputs[index].element_bytes = static_cast<std::uint32_t>(bytes_per_element(*type));
    ++index;
  }
  return inputs;
}

}  // namespace weft::kineto_json
