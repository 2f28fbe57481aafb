#include "traces/execution_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sim/error.h"
#include "traces/json_stream.h"
#include "traces/kineto_names.h"
#include "traces/mended_json.h"
#include "traces/readable_text.h"

namespace weft {
namespace {

namespace dom = simdjson::dom;

using List = std::vector<dom::element>;

std::string_view text(dom::element e) {
  std::string_view out;
  return e.get(out) == simdjson::SUCCESS ? out : std::string_view();
}

std::optional<std::int64_t> integer(dom::element e) {
  std::int64_t out = 0;
  return e.get(out) == simdjson::SUCCESS ? std::optional(out) : std::nullopt;
}

// Empty where it is none.
List list(dom::element e) {
  dom::array out;
  return e.get(out) == simdjson::SUCCESS ? List(out.begin(), out.end()) : List();
}

List list(dom::object o, std::string_view key) {
  dom::element found;
  return o[key].get(found) == simdjson::SUCCESS ? list(found) : List();
}

// Of "Tensor(long int)" or "GenericList[Tensor(float),Tensor(float)]" the first tensor's type.
std::string_view element_type(std::string_view type) {
  const std::size_t begin = type.find("Tensor(");
  if (begin == std::string_view::npos) return {};
  type.remove_prefix(begin + 7);
  return type.substr(0, type.find(')'));
}

// Sides of a node as its schema has them: flat ("input_shapes") or in an object ("inputs": {"shapes"}).
struct Side {
  List values, shapes, types;

  Side(dom::object node, const char* name, const char* flat_shapes, const char* flat_types) {
    dom::object nested;
    if (node[name].get(nested) == simdjson::SUCCESS) {
      values = list(nested, "values");
      shapes = list(nested, "shapes");
      types = list(nested, "types");
    } else {
      values = list(node, name);
      shapes = list(node, flat_shapes);
      types = list(node, flat_types);
    }
  }
};

class NodeReader {
 public:
  explicit NodeReader(ExecutionTrace& trace) : trace_(trace) {}

  // nullopt: a node that no record function made, as those of processes and threads.
  std::optional<ExecutionNode> read(dom::object o) {
    const Attributes attributes(o);
    ExecutionNode node;
    node.record_function = attributes.integer("rf_id").value_or(0);
    if (node.record_function <= 0) return std::nullopt;
    node.thread = attributes.integer("tid").value_or(0);
    dom::element name;
    if (o["name"].get(name) == simdjson::SUCCESS) node.name = trace_.texts(readable(text(name)));
    const Side inputs(o, "inputs", "input_shapes", "input_types");
    OperatorInputs read;
    read_side(inputs, node.reads, &read);
    node.inputs = &*trace_.inputs.insert(std::move(read)).first;
    read_side(Side(o, "outputs", "output_shapes", "output_types"), node.writes, nullptr);
    if (node.name == "record_param_comms") read_collective(attributes, inputs, node);
    return node;
  }

 private:
  // Of the flat form members of the node, else a list of name and value.
  class Attributes {
   public:
    explicit Attributes(dom::object node) : node_(node), attributes_(list(node, "attrs")) {}

    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const {
      const auto found = find(name);
      return found ? weft::integer(*found) : std::nullopt;
    }
    [[nodiscard]] std::string_view text(std::string_view name) const {
      const auto found = find(name);
      return found ? weft::text(*found) : std::string_view();
    }

   private:
    [[nodiscard]] std::optional<dom::element> find(std::string_view name) const {
      dom::element found;
      if (node_[name].get(found) == simdjson::SUCCESS) return found;
      for (const dom::element attribute : attributes_) {
        if (attribute["name"].get(found) == simdjson::SUCCESS && weft::text(found) == name &&
            attribute["value"].get(found) == simdjson::SUCCESS)
          return found;
      }
      return std::nullopt;
    }

    dom::object node_;
    List attributes_;
  };

  static void read_side(const Side& side, std::vector<std::int64_t>& storages, OperatorInputs* inputs) {
    auto shape = side.shapes.begin();
    auto type = side.types.begin();
    for (const dom::element value : side.values) {
      if (shape == side.shapes.end() || type == side.types.end()) return;
      const std::string_view word = text(*type);
      if (word.starts_with("Tensor(")) {
        add_tensor(value, *shape, word, storages, inputs);
      } else if (word.find("[Tensor(") != std::string_view::npos) {
        // A list of tensors is one input each, as of profiles.
        const List tensors = list(value), shapes = list(*shape);
        for (std::size_t t = 0; t < tensors.size() && t < shapes.size(); ++t)
          add_tensor(tensors[t], shapes[t], word, storages, inputs);
      } else if (inputs && inputs->size() < kMostInputs) {
        inputs->emplace_back();
      }
      ++shape;
      ++type;
    }
  }

  // A tensor is [its id, its storage's, offset, elements, bytes of one, device].
  static void add_tensor(dom::element value, dom::element shape, std::string_view type,
                         std::vector<std::int64_t>& storages, OperatorInputs* inputs) {
    const List tensor = list(value);
    const std::optional<std::int64_t> storage = tensor.size() > 1 ? integer(tensor[1]) : std::nullopt;
    if (storage && *storage > 0 && storages.size() < kMostInputs) storages.push_back(*storage);
    if (!inputs || inputs->size() >= kMostInputs) return;
    OperatorInput input;
    const std::optional<std::int64_t> bytes = tensor.size() > 4 ? integer(tensor[4]) : std::nullopt;
    if (bytes && *bytes > 0 && *bytes <= 16)
      input.element_bytes = static_cast<std::uint32_t>(*bytes);
    else if (const auto known = collective_type(element_type(type)))
      input.element_bytes = static_cast<std::uint32_t>(bytes_per_element(*known));
    for (const dom::element size : list(shape)) {
      const auto n = integer(size);
      if (!n || *n < 0) return;
      input.sizes.push_back(*n);
      if (elements(input) > static_cast<double>(kMostElements)) return;
    }
    inputs->push_back(std::move(input));
  }

  // Attributes of schema 1.1, else the inputs: tensors first, then by position numbers and the collective's name.
  void read_collective(const Attributes& attributes, const Side& inputs, ExecutionNode& node) {
    KinetoCollective c;
    c.name = readable(attributes.text("collective_name"));
    c.type = readable(attributes.text("dtype"));
    auto type = inputs.types.begin();
    for (const dom::element value : inputs.values) {
      if (type == inputs.types.end()) break;
      if (c.name.empty() && text(*type) == "String") c.name = readable(text(value));
      if (c.type.empty()) c.type = readable(element_type(text(*type)));
      ++type;
    }
    if (!collective_kind(c.name)) return;  // "wait", "init"
    c.elements = attributes.integer("in_msg_nelems");
    if (!c.elements) {
      double sum = 0;
      for (const OperatorInput& input : *node.inputs)
        if (!input.sizes.empty()) sum += elements(input);
      if (sum > 0 && sum <= static_cast<double>(kMostElements)) c.elements = static_cast<std::int64_t>(sum);
    }
    c.group_name = readable(attributes.text("pg_name"));
    const auto size = attributes.integer("pg_size");
    if (size && *size > 0 && *size <= kMaxWorld) c.group_size = size;
    const auto first = attributes.integer("global_rank_start"), stride = attributes.integer("global_rank_stride");
    if (c.group_size && first && stride) c.group_ranks = spaced_ranks(*first, *stride, *size);
    node.collective = &trace_.collectives.emplace_back(std::move(c));
  }

  ExecutionTrace& trace_;
};

}  // namespace

bool is_execution_trace(const std::filesystem::path& file) {
  JsonStream stream(file);
  if (!stream.take_if('{')) return false;
  std::string key;
  for (bool first = true; stream.next_key(first, key); first = false) {
    if (key == "nodes" || key == "traceEvents") return key == "nodes";
    stream.skip_value();
  }
  return false;
}

ExecutionTrace read_execution_trace(const std::filesystem::path& file) {
  ExecutionTrace trace;
  trace.name = file.string();
  const auto fail = [&](const std::string& place, const std::string& message) {
    throw InputError(trace.name, place, message);
  };
  JsonStream stream(file);
  dom::parser parser;
  NodeReader reader(trace);
  if (!stream.take_if('{')) fail("", "expected an execution trace of PyTorch (an object with \"nodes\")");
  bool found = false;
  std::string key;
  for (bool first = true; stream.next_key(first, key); first = false) {
    if (key == "nodes") {
      if (!stream.take_if('[')) fail("/nodes", "expected a list of nodes");
      found = true;
      for (std::size_t i = 0; stream.next_element(i == 0); ++i) {
        const std::string_view json = stream.value();
        dom::object node;
        if (const auto error = parser.parse(json.data(), json.size(), false).get(node);
            error && parser.parse(mended_json(json)).get(node))
          fail(fmt::format("/nodes/{}", i), std::string("expected a node, got: ") + simdjson::error_message(error));
        if (!node["name"].is_string()) fail(fmt::format("/nodes/{}", i), "expected a \"name\", got none");
        if (auto read = reader.read(node)) trace.nodes.push_back(std::move(*read));
      }
    } else if (key == "pid") {
      const std::string_view json = stream.value();
      dom::element pid;
      if (parser.parse(json.data(), json.size(), false).get(pid) == simdjson::SUCCESS)
        trace.process = integer(pid).value_or(-1);
    } else {
      stream.skip_value();
    }
  }
  stream.end();
  if (!found) fail("", "expected an execution trace of PyTorch (an object with \"nodes\"), got an object without");
  std::stable_sort(trace.nodes.begin(), trace.nodes.end(),
                   [](const auto& a, const auto& b) { return a.record_function < b.record_function; });
  for (std::size_t i = 1; i < trace.nodes.size(); ++i)
    if (trace.nodes[i].record_function == trace.nodes[i - 1].record_function)
      fail("/nodes", fmt::format("expected each \"rf_id\" once, got {} of {} and {}", trace.nodes[i].record_function,
                                 trace.nodes[i - 1].name, trace.nodes[i].name));
  return trace;
}

}  // namespace weft
