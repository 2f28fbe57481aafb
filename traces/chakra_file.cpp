#include "traces/chakra_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "chakra.pb.h"
#include "sim/error.h"
#include "traces/chakra_json.h"
#include "traces/packed_file.h"

namespace weft {
namespace {

constexpr std::uint64_t kMostMessage = std::uint64_t{64} << 20;

std::optional<ChakraValue> value_of(const chakra::Attribute& a) {
  switch (a.value_case()) {
    case chakra::Attribute::kDoubleVal:
      return a.double_val();
    case chakra::Attribute::kFloatVal:
      return double{a.float_val()};
    case chakra::Attribute::kInt32Val:
      return std::int64_t{a.int32_val()};
    case chakra::Attribute::kInt64Val:
      return std::int64_t{a.int64_val()};
    case chakra::Attribute::kUint32Val:
      return std::int64_t{a.uint32_val()};
    case chakra::Attribute::kUint64Val:
      if (a.uint64_val() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(a.uint64_val());
    case chakra::Attribute::kBoolVal:
      return a.bool_val();
    case chakra::Attribute::kStringVal:
      return a.string_val();
    case chakra::Attribute::kInt64List:
      return std::vector<std::int64_t>(a.int64_list().values().begin(), a.int64_list().values().end());
    case chakra::Attribute::kUint32List:
      return std::vector<std::int64_t>(a.uint32_list().values().begin(), a.uint32_list().values().end());
    case chakra::Attribute::VALUE_NOT_SET:
      break;
  }
  return std::nullopt;
}

void set_value(const ChakraValue& value, chakra::Attribute& out) {
  if (const auto* n = std::get_if<std::int64_t>(&value)) out.set_int64_val(*n);
  if (const auto* b = std::get_if<bool>(&value)) out.set_bool_val(*b);
  if (const auto* d = std::get_if<double>(&value)) out.set_double_val(*d);
  if (const auto* s = std::get_if<std::string>(&value)) out.set_string_val(*s);
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) {
    auto* list = out.mutable_int64_list();
    list->mutable_values()->Add(l->begin(), l->end());
  }
}

template <class Attributes>
ChakraAttributes attributes_of(const Attributes& list) {
  ChakraAttributes out;
  for (const chakra::Attribute& a : list)
    if (auto value = value_of(a)) out.set(a.name(), std::move(*value));
  return out;
}

template <class Message>
void add_attributes(const ChakraAttributes& attributes, Message& out) {
  for (const auto& [name, value] : attributes.all()) {
    chakra::Attribute& a = *out.add_attr();
    a.set_name(name);
    set_value(value, a);
  }
}

ChakraNode node_of(const chakra::Node& n) {
  ChakraNode out;
  out.id = n.id();
  out.name = n.name();
  out.type = static_cast<ChakraType>(n.type());
  out.control_dependencies.assign(n.ctrl_deps().begin(), n.ctrl_deps().end());
  out.data_dependencies.assign(n.data_deps().begin(), n.data_deps().end());
  out.duration_us = n.duration_micros();
  out.input_values = n.inputs().values();
  out.input_shapes = n.inputs().shapes();
  out.attributes = attributes_of(n.attr());
  return out;
}

class BinaryReader {
 public:
  explicit BinaryReader(const std::filesystem::path& path) : packed_(path) { file_.name = path.string(); }

  ChakraFile read() {
    chakra::GlobalMetadata metadata;
    if (!next(metadata)) fail("expected metadata, got the end of the file");
    file_.metadata = attributes_of(metadata.attr());
    chakra::Node node;
    while (next(node)) file_.nodes.push_back(node_of(node));
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_.name, fmt::format("message {}", number_), "expected a binary Chakra trace: " + message);
  }

  // False at the end of the file.
  bool next(google::protobuf::Message& message) {
    std::uint64_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      unsigned char byte = 0;
      if (packed_.read({reinterpret_cast<char*>(&byte), 1}) == 0) {
        if (shift != 0) fail("expected a length, got the end of the file");
        return false;
      }
      size |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) break;
      if (shift == 28) fail("expected a length of at most five bytes, got a longer one");
    }
    if (size > kMostMessage) fail(fmt::format("expected messages of at most {} B, got {} B", kMostMessage, size));
    // Not trusted with memory before the file has shown that it is that long.
    buffer_.clear();
    while (buffer_.size() < size) {
      const std::size_t before = buffer_.size();
      buffer_.resize(std::min<std::size_t>(size, before + (std::size_t{1} << 20)));
      if (packed_.read({buffer_.data() + before, buffer_.size() - before}) != buffer_.size() - before)
        fail("expected a whole message, got the end of the file");
    }
    if (!message.ParseFromArray(buffer_.data(), static_cast<int>(size))) fail("expected a message of its schema");
    ++number_;
    return true;
  }

  PackedFile packed_;
  ChakraFile file_;
  std::size_t number_ = 0;
  std::string buffer_;
};

void append(const google::protobuf::MessageLite& message, std::string& out) {
  std::string bytes;
  message.SerializeToString(&bytes);
  for (std::size_t size = bytes.size(); true; size >>= 7) {
    if (size < 0x80) {
      out += static_cast<char>(size);
      break;
    }
    out += static_cast<char>((size & 0x7F) | 0x80);
  }
  out += bytes;
}

bool is_json(const std::filesystem::path& path) {
  PackedFile file(path);
  char c = ' ';
  while (c == ' ' || c == '\n' || c == '\r' || c == '\t')
    if (file.read({&c, 1}) == 0) return false;
  return c == '{' || c == '[';
}

}  // namespace

std::int64_t ChakraAttributes::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = find<std::int64_t>(name);
  return value ? *value : otherwise;
}

std::string ChakraAttributes::text(std::string_view name) const {
  const auto* value = find<std::string>(name);
  return value ? *value : std::string();
}

ChakraFile read_chakra(const std::filesystem::path& path) {
  ChakraFile file = is_json(path) ? read_chakra_json(path) : BinaryReader(path).read();
  if (file.nodes.empty()) throw InputError(file.name, "", "expected a Chakra trace with nodes, got none");
  std::unordered_set<std::uint64_t> ids;
  for (const ChakraNode& node : file.nodes)
    if (!ids.insert(node.id).second)
      throw InputError(file.name, fmt::format("node {}", node.id), "expected each id once, got it twice");
  return file;
}

void write_chakra(const ChakraFile& content, const std::filesystem::path& file) {
  std::string out;
  chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  add_attributes(content.metadata, metadata);
  append(metadata, out);
  for (const ChakraNode& node : content.nodes) {
    chakra::Node n;
    n.set_id(node.id);
    n.set_name(node.name);
    n.set_type(static_cast<std::uint32_t>(node.type));
    n.mutable_ctrl_deps()->Add(node.control_dependencies.begin(), node.control_dependencies.end());
    n.mutable_data_deps()->Add(node.data_dependencies.begin(), node.data_dependencies.end());
    n.set_duration_micros(node.duration_us);
    if (!node.input_shapes.empty()) n.mutable_inputs()->set_shapes(node.input_shapes);
    add_attributes(node.attributes, n);
    append(n, out);
  }
  write_atomically(file, out);
}

}  // namespace weft
