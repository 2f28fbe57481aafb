#include "traces/chakra_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "sim/error.h"
#include "traces/json_stream.h"

namespace weft {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::element;
using simdjson::dom::object;

class JsonReader {
 public:
  explicit JsonReader(const std::filesystem::path& path) : stream_(path) { file_.name = path.string(); }

  ChakraFile read() {
    stream_.take('{');
    bool found = false;
    std::string key;
    for (bool first = true; stream_.next_key(first, key); first = false) {
      if (key != "workload_graph") {
        if (key == "nodes")
          throw InputError(file_.name, "/nodes",
                           "expected a Chakra trace (\"workload_graph\"), got an execution trace of PyTorch");
        stream_.skip_value();
        continue;
      }
      found = true;
      stream_.take('[');
      while (stream_.next_element(file_.nodes.empty())) read_node(stream_.value());
    }
    stream_.end();
    if (!found) throw InputError(file_.name, "", "expected a Chakra trace with \"workload_graph\", got JSON without");
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_.name, fmt::format("/workload_graph/{}", file_.nodes.size()), message);
  }

  // Chakra's own reader wants "Id", "Name" and "NodeType"; its writers have small letters, too.
  static bool member(object o, const char* name, const char* other, element& out) {
    return o[name].get(out) == SUCCESS || o[other].get(out) == SUCCESS;
  }

  std::vector<std::uint64_t> ids(object o, const char* name, const char* other) const {
    std::vector<std::uint64_t> out;
    element list;
    if (!member(o, name, other, list)) return out;
    if (!list.is_array()) fail(fmt::format("expected a list of ids in \"{}\"", name));
    for (const element e : simdjson::dom::array(list)) {
      std::uint64_t id = 0;
      if (e.get(id) != SUCCESS) fail(fmt::format("expected ids in \"{}\", got {}", name, simdjson::minify(e)));
      out.push_back(id);
    }
    return out;
  }

  void read_node(std::string_view json) {
    object o;
    if (const auto error = parser_.parse(json.data(), json.size(), false).get(o); error != SUCCESS)
      fail(std::string("expected a node, got: ") + simdjson::error_message(error));
    ChakraNode node;
    element e;
    if (!member(o, "Id", "id", e) || e.get(node.id) != SUCCESS) fail("expected an id in \"Id\"");
    std::string_view name;
    if (member(o, "Name", "name", e) && e.get(name) == SUCCESS) node.name = name;
    std::uint64_t type = 0;
    if (!member(o, "NodeType", "type", e) || e.get(type) != SUCCESS || type > 10)
      fail("expected a type from 0 to 10 in \"NodeType\"");
    node.type = static_cast<ChakraType>(type);
    node.control_dependencies = ids(o, "ctrlDeps", "ctrl_deps");
    node.data_dependencies = ids(o, "data_deps", "dataDeps");
    if (member(o, "runtime", "duration_micros", e) && e.get(node.duration_us) != SUCCESS)
      fail("expected whole microseconds in \"runtime\", got " + simdjson::minify(e));
    bool on_host = true;
    if (o["is_cpu_op"].get(on_host) == SUCCESS) node.attributes.set("is_cpu_op", on_host);
    for (const char* key :
         {"comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "num_ops", "tensor_size", "tid", "stream"}) {
      std::int64_t value = 0;
      if (o[key].get(value) == SUCCESS) node.attributes.set(key, value);
    }
    if (o["pg_name"].get(name) == SUCCESS) node.attributes.set("pg_name", std::string(name));
    file_.nodes.push_back(std::move(node));
  }

  JsonStream stream_;
  simdjson::dom::parser parser_;
  ChakraFile file_;
};

}  // namespace

ChakraFile read_chakra_json(const std::filesystem::path& file) { return JsonReader(file).read(); }

}  // namespace weft
