// Fields of Kineto's events as simdjson reads them; for kineto_events.cpp only.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "traces/kineto_events.h"
#include "traces/kineto_names.h"
#include "traces/mended_json.h"
#include "traces/operator_call.h"

namespace weft::kineto_json {

// The on-demand parser keeps every digit of the times and must not be used further after a syntax error; so none may be
// left for it to find. Text that is not JSON is mended where it can be.
class CheckedParser {
 public:
  // `json` is followed by SIMDJSON_PADDING bytes. The document is valid until the next call, and as long as `json` is.
  simdjson::ondemand::document operator()(std::string_view json) {
    const auto error = checker_.parse(json.data(), json.size(), false).error();
    if (error == simdjson::SUCCESS)
      return parser_.iterate(simdjson::padded_string_view(json, json.size() + simdjson::SIMDJSON_PADDING));
    mended_ = simdjson::padded_string(mended_json(json));
    if (checker_.parse(mended_).error() != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    return parser_.iterate(mended_);
  }

 private:
  simdjson::dom::parser checker_;
  simdjson::ondemand::parser parser_;
  simdjson::padded_string mended_;
};

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

inline std::string_view text(simdjson::ondemand::object& o, std::string_view key) {
  std::string_view value;
  if (o[key].get_string().get(value) != simdjson::SUCCESS) return {};
  return value;
}

// An argument as it stands in the file; empty when there is none.
inline std::string_view raw_list(simdjson::ondemand::object& o, std::string_view key) {
  simdjson::ondemand::array list;
  std::string_view raw;
  if (o[key].get_array().get(list) != simdjson::SUCCESS || list.raw_json().get(raw) != simdjson::SUCCESS) return {};
  return raw;
}

// Of an operator or annotation; -1: none.
inline std::int64_t record_function(simdjson::ondemand::object& args) {
  const std::optional<std::int64_t> id = integer(args, "Record function id");
  return id && *id > 0 ? *id : integer(args, "External id").value_or(-1);
}

// Of a call and the operation on the GPU that it launched.
inline std::int64_t correlation(simdjson::ondemand::object& args) {
  const std::optional<std::int64_t> id = integer(args, "correlation");
  return id ? *id : integer(args, "External id").value_or(-1);
}

// CUPTI writes "no stream" as -1 or as 2^32 - 1.
inline std::int32_t stream_id(std::int64_t id, std::int32_t otherwise) {
  return id < 0 || id > std::numeric_limits<std::int32_t>::max() ? otherwise : static_cast<std::int32_t>(id);
}
inline std::int32_t stream(simdjson::ondemand::object& args, std::string_view key) {
  return stream_id(integer(args, key).value_or(-1), -1);
}

// The elements of all tensors in "Input Dims": a list of sizes is a tensor, deeper lists hold tensors.
inline std::int64_t count_elements(simdjson::dom::array dims) {
  std::int64_t total = 0;
  std::int64_t product = 1;
  bool is_tensor = false;
  for (const simdjson::dom::element entry : dims) {
    simdjson::dom::array deeper;
    std::int64_t size = 0;
    if (entry.get(deeper) == simdjson::SUCCESS) {
      if (__builtin_add_overflow(total, count_elements(deeper), &total)) return 0;
      continue;
    }
    if (entry.get(size) != simdjson::SUCCESS || size < 0 || __builtin_mul_overflow(product, size, &product)) return 0;
    is_tensor = true;
  }
  if (is_tensor && __builtin_add_overflow(total, product, &total)) return 0;
  return total;
}

// "Process Group Ranks", text or a list. Lists of more than 30 are abridged; where those are evenly spaced, "Global
// rank start" and "Global rank stride" tell the same (PyTorch's saveNcclMeta; a stride of 0 or -1: they are not).
inline std::optional<std::vector<std::int64_t>> group_ranks(simdjson::ondemand::object& args,
                                                            std::optional<std::int64_t> size) {
  const std::string_view list = raw_list(args, "Process Group Ranks");
  if (auto ranks = rank_list(list.empty() ? text(args, "Process Group Ranks") : list)) return ranks;
  const std::optional<std::int64_t> first = integer(args, "Global rank start");
  const std::optional<std::int64_t> stride = integer(args, "Global rank stride");
  if (!size || !first || !stride) return std::nullopt;
  return spaced_ranks(*first, *stride, *size);
}

// `of_inputs`: where no number of elements stands, those of the inputs.
inline KinetoCollective collective_of(simdjson::ondemand::object& args, bool of_inputs) {
  KinetoCollective c;
  c.name = text(args, "Collective name");
  c.elements = integer(args, "In msg nelems");
  c.type = text(args, "dtype");
  c.group_size = integer(args, "Group size");
  c.group_ranks = group_ranks(args, c.group_size);
  c.group_name = text(args, "Process Group Name");
  c.peer = integer(args, "Dst Rank");
  if (!c.peer) c.peer = integer(args, "Src Rank");
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  const auto list_of = [&](const char* key) {
    const std::string_view raw = raw_list(args, key);
    return !raw.empty() && parser.parse(raw.data(), raw.size()).get(list) == simdjson::SUCCESS;
  };
  if (!c.elements && of_inputs && list_of("Input Dims")) {
    const std::int64_t elements = count_elements(list);
    if (elements > 0) c.elements = elements;
  }
  if (c.type.empty() && list_of("Input type")) {
    for (const simdjson::dom::element entry : list) {
      std::string_view word;
      if (c.type.empty() && entry.get(word) == simdjson::SUCCESS) c.type = word;
    }
  }
  return c;
}

template <class Fail>
std::uint32_t bounded(std::int64_t value, const char* what, const Fail& fail) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
    fail(fmt::format("expected {} from 0 to 2^31 - 1, got {}", what, value));
  return static_cast<std::uint32_t>(value);
}

// Three whole numbers, as of a grid; false where there are none. `fail` throws.
template <class Fail>
bool triple(simdjson::ondemand::object& args, std::string_view key, std::array<std::uint32_t, 3>& out,
            const Fail& fail) {
  simdjson::ondemand::array list;
  if (args[key].get_array().get(list) != simdjson::SUCCESS) return false;
  std::size_t index = 0;
  for (auto entry : list) {
    if (index == 3) fail(fmt::format("expected three numbers in \"{}\", got more", key));
    std::int64_t value = 0;
    const std::string_view got = entry.raw_json_token();
    if (entry.get_int64().get(value) != simdjson::SUCCESS)
      fail(fmt::format("expected whole numbers in \"{}\", got {}", key, got));
    out[index++] = bounded(value, "a dimension", fail);
  }
  return index == 3;
}

// Of a kernel, or of a call that launches one. None where there is no grid or no block.
template <class Fail>
std::optional<LaunchShape> launch_shape(simdjson::ondemand::object& args, const Fail& fail) {
  LaunchShape shape;
  if (!triple(args, "grid", shape.grid, fail) || !triple(args, "block", shape.block, fail)) return std::nullopt;
  shape.registers_per_thread = bounded(integer(args, "registers per thread").value_or(0), "registers", fail);
  shape.shared_memory_bytes = bounded(integer(args, "shared memory").value_or(0), "shared memory", fail);
  if (LaunchShape cluster; triple(args, "cluster", cluster.grid, fail)) shape.set_cluster(cluster.grid);
  return shape;
}

inline bool read_size(simdjson::dom::element e, OperatorInput& input) {
  std::int64_t n = 0;
  if (e.get(n) != simdjson::SUCCESS || n < 0) return false;
  input.sizes.push_back(n);
  return elements(input) <= static_cast<double>(kMostElements);
}

// "Input Dims" as sizes; deeper lists are lists of tensors, which count as one input each. False when an entry is no
// size.
inline bool read_sizes(simdjson::dom::array dims, OperatorInputs& inputs) {
  for (const simdjson::dom::element entry : dims) {
    simdjson::dom::array list;
    if (entry.get(list) != simdjson::SUCCESS || inputs.size() >= kMostInputs) return false;
    OperatorInput input;
    bool holds_tensors = false;
    for (const simdjson::dom::element value : list) {
      simdjson::dom::array tensor;
      if (value.get(tensor) != simdjson::SUCCESS) {
        if (!read_size(value, input)) return false;
        continue;
      }
      holds_tensors = true;
      OperatorInput element;
      for (const simdjson::dom::element size : tensor)
        if (!read_size(size, element)) return false;
      inputs.push_back(std::move(element));
    }
    if (!holds_tensors) inputs.push_back(std::move(input));
  }
  return true;
}

// "Input Dims" with "Input type". Sizes that do not hold together are as good as none: only a better guess depends on
// them.
inline OperatorInputs operator_inputs(std::string_view dims, std::string_view types) {
  OperatorInputs inputs;
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  if (parser.parse(dims.data(), dims.size()).get(list) != simdjson::SUCCESS || !read_sizes(list, inputs)) return {};
  if (types.empty() || parser.parse(types.data(), types.size()).get(list) != simdjson::SUCCESS) return inputs;
  std::size_t index = 0;
  for (const simdjson::dom::element entry : list) {
    if (index >= inputs.size()) break;
    std::string_view word;
    const std::optional<DataType> type = entry.get(word) == simdjson::SUCCESS ? collective_type(word) : std::nullopt;
    if (type) inputs[index].element_bytes = static_cast<std::uint32_t>(bytes_per_element(*type));
    ++index;
  }
  return inputs;
}

}  // namespace weft::kineto_json
