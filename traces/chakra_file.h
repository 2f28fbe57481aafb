// Chakra execution traces (github.com/mlcommons/chakra) as they stand in a file, binary or JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

// Numbers as in et_def.proto.
enum class ChakraType : std::uint32_t {
  metadata = 1,
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7
};
enum class ChakraCollective : std::int64_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};

// All numbers are int64; what does not fit is left out when it is read.
using ChakraValue = std::variant<std::int64_t, bool, double, std::string, std::vector<std::int64_t>>;

class ChakraAttributes {
 public:
  void set(std::string name, ChakraValue value) { list_.emplace_back(std::move(name), std::move(value)); }
  // nullptr when there is none, or when it is of another type.
  template <class T>
  [[nodiscard]] const T* find(std::string_view name) const {
    for (const auto& [key, value] : list_)
      if (key == name) return std::get_if<T>(&value);
    return nullptr;
  }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, ChakraValue>>& all() const { return list_; }

 private:
  std::vector<std::pair<std::string, ChakraValue>> list_;
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::compute;
  std::vector<std::uint64_t> control_dependencies;
  std::vector<std::uint64_t> data_dependencies;
  std::uint64_t duration_us = 0;
  std::string input_values;
  std::string input_shapes;
  ChakraAttributes attributes;
};

struct ChakraFile {
  std::string name;
  ChakraAttributes metadata;
  std::vector<ChakraNode> nodes;  // in file order, ids distinct
};

// Binary (a GlobalMetadata and Nodes, each behind its length) or JSON ("workload_graph"); packed or not. Treats the
// file as untrusted: throws MissingInput or InputError with the node's place.
[[nodiscard]] ChakraFile read_chakra(const std::filesystem::path& file);

// Binary, as ASTRA-sim and Chakra's own readers take it. Throws InputError when it cannot be written.
void write_chakra(const ChakraFile& content, const std::filesystem::path& file);

}  // namespace weft
