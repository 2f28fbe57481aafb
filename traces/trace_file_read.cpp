#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/error.h"
#include "traces/packed_file.h"
#include "traces/trace_file.h"
#include "traces/trace_json.h"
#include "traces/trace_traffic.h"
#include "traces/trace_words.h"

namespace weft {
namespace {

using trace_json::array;
using trace_json::element;
using trace_json::kAnyTime;
using trace_json::kMaxId;
using trace_json::object;
using trace_json::TraceJson;

class TraceReader : private TraceJson {
 public:
  TraceReader(element document, std::string file) : TraceJson(std::move(file)), document_(document) {}

  Trace read() {
    object top;
    if (document_.get(top) != simdjson::SUCCESS) fail("", R"(expected an object with "schema": "weft-trace/1")");
    std::string_view schema;
    if (top["schema"].get(schema) != simdjson::SUCCESS)
      fail("/schema", "expected \"weft-trace/1\", got none: this is not a weft trace (weft import makes one)");
    if (schema != "weft-trace/1") fail("/schema", R"(expected "weft-trace/1", got ")" + std::string(schema) + "\"");
    only_keys(top, "", {"schema", "source", "world_size", "strings", "shapes", "operators", "ranks"});
    Trace trace;
    trace.source = text(top, "", "source");
    trace.world_size = static_cast<std::uint32_t>(integer(top, "", "world_size", 1, kMaxId));
    read_tables(top);
    std::size_t index = 0;
    for (const element rank : list(top, "", "ranks")) {
      trace.ranks.push_back(read_rank(as_object(rank, "/ranks/" + std::to_string(index)), index));
      ++index;
    }
    return trace;
  }

 private:
  void read_tables(object top) {
    std::size_t index = 0;
    for (const element e : list(top, "", "strings"))
      strings_.push_back(as_text(e, "/strings/" + std::to_string(index++)));
    index = 0;
    for (const element e : list(top, "", "shapes")) {
      const std::string place = "/shapes/" + std::to_string(index++);
      const std::vector<std::int64_t> v = integers(as_list(e, place), place, 0, kMaxId);
      if (v.size() != 8 && v.size() != 9) fail(place, "expected 8 or 9 integers, got " + std::to_string(v.size()));
      const auto u = [&](std::size_t i) { return static_cast<std::uint32_t>(v[i]); };
      shapes_.push_back({{u(0), u(1), u(2)}, {u(3), u(4), u(5)}, u(6), u(7), v.size() == 9 ? u(8) : 1});
    }
    array operators;  // traces of weft before 2026-11-21 have none
    if (top["operators"].get(operators) != simdjson::SUCCESS) return;
    for (const element e : operators) operators_.push_back(std::make_shared<const OperatorCall>(read_operator(e)));
  }
  OperatorCall read_operator(element e) const {
    const std::string place = "/operators/" + std::to_string(operators_.size());
    OperatorCall call;
    bool is_name = true;
    for (const element part : as_list(e, place)) {
      if (is_name) {
        call.name = string_at(as_integer(part, place, 0, kMaxId), place);
      } else {
        std::vector<std::int64_t> v = integers(as_list(part, place), place, 0, kMostElements);
        if (v.empty() || v.front() > 64)
          fail(place, "expected bytes an element (0 to 64) before the sizes of an input");
        call.inputs.push_back({static_cast<std::uint32_t>(v.front()), {v.begin() + 1, v.end()}});
      }
      is_name = false;
    }
    if (is_name) fail(place, "expected a name, got an empty array");
    return call;
  }
  const std::string& string_at(std::int64_t index, const std::string& place) const {
    if (index < 0 || static_cast<std::size_t>(index) >= strings_.size())
      fail(place, "expected an index into /strings, got " + std::to_string(index));
    return strings_[static_cast<std::size_t>(index)];
  }
  template <class Enum, std::size_t n>
  Enum word_at(const std::array<Enum, n>& values, std::int64_t index, const std::string& place,
               const char* what) const {
    const std::string& word = string_at(index, place);
    const std::optional<Enum> value = from_word(values, word);
    if (!value) fail(place, std::string("expected ") + what + ", got \"" + word + "\"");
    return *value;
  }

  TraceRank read_rank(object o, std::size_t index) const {
    const std::string place = "/ranks/" + std::to_string(index);
    only_keys(o, place,
              {"rank", "device", "compute_units", "memory_bytes", "clock_moved_fs", "iterations", "ops", "collectives",
               "waits", "counters", "traffic"});
    TraceRank rank;
    rank.rank = static_cast<std::uint32_t>(integer(o, place, "rank", 0, kMaxId));
    rank.device = text(o, place, "device");
    rank.compute_units = static_cast<std::uint32_t>(integer(o, place, "compute_units", 0, kMaxId));
    rank.memory_bytes = integer(o, place, "memory_bytes", 0, kAnyTime);
    if (o["clock_moved_fs"].error() == simdjson::SUCCESS)
      rank.clock_moved = Time(integer(o, place, "clock_moved_fs", -kAnyTime, kAnyTime));
    for (const element e : list(o, place, "iterations")) {
      const std::string here = place + "/iterations/" + std::to_string(rank.iterations.size());
      const std::vector<std::int64_t> v = integers(as_list(e, here), here, 0, kAnyTime);
      if (v.size() != 3) fail(here, "expected [name, start, end], got " + std::to_string(v.size()) + " numbers");
      rank.iterations.push_back({string_at(v[0], here), Time(v[1]), Time(v[2])});
    }
    read_ops(as_object(get(o, place, "ops"), place + "/ops"), place + "/ops", rank.ops);
    read_collectives(list(o, place, "collectives"), place + "/collectives", rank.ops);
    read_waits(list(o, place, "waits"), place + "/waits", rank.ops);
    if (element counters; o["counters"].get(counters) == simdjson::SUCCESS)
      read_counters(as_object(counters, place + "/counters"), place + "/counters", rank.ops);
    if (element traffic; o["traffic"].get(traffic) == simdjson::SUCCESS)
      rank.traffic = read_traffic(traffic, place + "/traffic", file());
    return rank;
  }

  using Setter = std::function<void(TraceOp&, std::int64_t, const std::string&)>;
  void column(object o, const std::string& place, const char* key, std::int64_t low, std::int64_t high,
              std::vector<TraceOp>& ops, const Setter& set) const {
    const std::string here = place + "/" + key;
    std::size_t index = 0;
    for (const element e : list(o, place, key)) {
      if (index == ops.size()) fail(here, "expected " + std::to_string(ops.size()) + " values, got more");
      std::int64_t value = 0;
      if (e.get(value) != simdjson::SUCCESS || value < low || value > high)
        value = as_integer(e, here + "/" + std::to_string(index), low, high);
      set(ops[index], value, here);
      ++index;
    }
    if (index != ops.size())
      fail(here, "expected " + std::to_string(ops.size()) + " values, got " + std::to_string(index));
  }

  void read_ops(object o, const std::string& place, std::vector<TraceOp>& ops) const {
    only_keys(o, place,
              {"count", "kind", "name", "op", "layer", "phase", "iteration", "stream", "correlation", "issued_fs",
               "issue_duration_fs", "start_fs", "duration_fs", "shape", "operator", "bytes", "direction"});
    const std::int64_t count = integer(o, place, "count", 0, kMaxId);
    // The count is not to be trusted with memory before the file has shown that many values.
    constexpr std::int64_t kSaturated = 0xFFFFFF;  // simdjson's array::size() counts no further
    if (static_cast<std::size_t>(std::min(count, kSaturated)) != list(o, place, "kind").size())
      fail(place + "/kind",
           "expected " + std::to_string(count) + " values, got " + std::to_string(list(o, place, "kind").size()));
    ops.resize(static_cast<std::size_t>(count));
    column(o, place, "kind", 0, kMaxId, ops, [&](TraceOp& op, std::int64_t v, const std::string& here) {
      op.kind = word_at(kTraceOpKinds, v, here, "a kind of operation");
    });
    column(o, place, "name", 0, kMaxId, ops,
           [&](TraceOp& op, std::int64_t v, const std::string& here) { op.name = string_at(v, here); });
    column(o, place, "op", 0, kMaxId, ops,
           [&](TraceOp& op, std::int64_t v, const std::string& here) { op.op = string_at(v, here); });
    column(o, place, "layer", 0, kMaxId, ops,
           [&](TraceOp& op, std::int64_t v, const std::string& here) { op.layer = string_at(v, here); });
    column(o, place, "phase", 0, kMaxId, ops, [&](TraceOp& op, std::int64_t v, const std::string& here) {
      op.phase = word_at(kTrainingPhases, v, here, "a training phase");
    });
    column(o, place, "iteration", -1, kMaxId, ops, [](TraceOp& op, std::int64_t v, const std::string&) {
      if (v >= 0) op.iteration = static_cast<std::uint32_t>(v);
    });
    column(o, place, "stream", 0, kMaxId, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.stream = static_cast<std::uint32_t>(v); });
    column(o, place, "correlation", -1, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.correlation = v; });
    column(o, place, "issued_fs", 0, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.issued = Time(v); });
    column(o, place, "issue_duration_fs", 0, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.issue_duration = Time(v); });
    column(o, place, "start_fs", 0, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.start = Time(v); });
    column(o, place, "duration_fs", 0, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.duration = Time(v); });
    column(o, place, "shape", -1, kMaxId, ops, [&](TraceOp& op, std::int64_t v, const std::string& here) {
      if (v < 0) return;
      if (static_cast<std::size_t>(v) >= shapes_.size())
        fail(here, "expected an index into /shapes or -1, got " + std::to_string(v));
      op.shape = shapes_[static_cast<std::size_t>(v)];
    });
    element operators;
    if (o["operator"].get(operators) == simdjson::SUCCESS) {
      column(o, place, "operator", -1, kMaxId, ops, [&](TraceOp& op, std::int64_t v, const std::string& here) {
        if (v < 0) return;
        if (static_cast<std::size_t>(v) >= operators_.size())
          fail(here, "expected an index into /operators or -1, got " + std::to_string(v));
        op.launched_by = operators_[static_cast<std::size_t>(v)];
      });
    }
    column(o, place, "bytes", 0, kAnyTime, ops,
           [](TraceOp& op, std::int64_t v, const std::string&) { op.bytes = Bytes(v); });
    column(o, place, "direction", 0, kMaxId, ops,
           [&](TraceOp& op, std::int64_t v, const std::string& here) { op.copy_direction = string_at(v, here); });
  }

  TraceOp& op_at(std::vector<TraceOp>& ops, element e, const std::string& place) const {
    return ops[static_cast<std::size_t>(as_integer(e, place, 0, static_cast<std::int64_t>(ops.size()) - 1))];
  }

  void read_collectives(array rows, const std::string& place, std::vector<TraceOp>& ops) const {
    std::size_t index = 0;
    for (const element row : rows) {
      const std::string here = place + "/" + std::to_string(index++);
      const array values = as_list(row, here);
      if (values.size() != 7 && values.size() != 10 && values.size() != 12)
        fail(here, "expected 7, 10 or 12 values, got " + std::to_string(values.size()));
      const auto at = [&](std::size_t i) { return values.at(i).value(); };
      const auto id_at = [&](std::size_t i) {
        return static_cast<std::uint32_t>(as_integer(at(i), here + "/" + std::to_string(i), 0, kMaxId));
      };
      TraceOp& op = op_at(ops, at(0), here + "/0");
      if (op.collective) fail(here, "expected one row for each collective, got a second one");
      TraceCollective c;
      c.kind = word_at(kCollectiveKinds, id_at(1), here + "/1", "a collective");
      if (!at(2).is_null()) c.elements = as_integer(at(2), here + "/2", 0, kAnyTime);
      if (!at(3).is_null()) c.type = word_at(kDataTypes, id_at(3), here + "/3", "a data type");
      c.group_size = id_at(4);
      for (const std::int64_t rank : integers(as_list(at(5), here + "/5"), here + "/5", 0, kMaxId))
        c.group_ranks.push_back(static_cast<std::uint32_t>(rank));
      c.group_name = string_at(id_at(6), here + "/6");
      if (values.size() >= 10) c.algorithm = string_at(id_at(7), here + "/7");
      if (values.size() >= 10) c.protocol = string_at(id_at(8), here + "/8");
      if (values.size() >= 10) c.channels = id_at(9);
      if (values.size() == 12) c.distance = id_at(10);
      if (values.size() == 12 && !at(11).is_null()) c.first = id_at(11);
      op.collective = std::move(c);
    }
  }

  void read_waits(array rows, const std::string& place, std::vector<TraceOp>& ops) const {
    std::size_t index = 0;
    for (const element row : rows) {
      const std::string here = place + "/" + std::to_string(index++);
      const array values = as_list(row, here);
      if (values.size() < 2)
        fail(here, "expected [operation, waits...], got " + std::to_string(values.size()) + " values");
      TraceOp& op = op_at(ops, values.at(0).value(), here + "/0");
      if (!op.waits.empty()) fail(here, "expected one row for each waiting operation, got a second one");
      const std::vector<std::int64_t> v = integers(values, here, 0, kMaxId);
      op.waits.assign(v.begin() + 1, v.end());
    }
  }

  // Columns, of the operations that the first of them names.
  void read_counters(object o, const std::string& place, std::vector<TraceOp>& ops) const {
    std::vector<std::string_view> keys(kKernelCounterWords.begin(), kKernelCounterWords.end());
    keys.emplace_back("op");
    only_keys(o, place, keys);
    const std::vector<std::int64_t> of =
        integers(list(o, place, "op"), place + "/op", 0, static_cast<std::int64_t>(ops.size()) - 1);
    std::vector<KernelCounters> rows(of.size());
    for (std::size_t i = 0; i < kKernelCounterCount; ++i) {
      element column;
      if (o[kKernelCounterWords[i]].get(column) != simdjson::SUCCESS) continue;
      const std::string here = place + "/" + std::string(kKernelCounterWords[i]);
      const array values = as_list(column, here);
      if (values.size() != rows.size())
        fail(here, "expected " + std::to_string(rows.size()) + " values, got " + std::to_string(values.size()));
      std::size_t row = 0;
      for (const element value : values) {
        if (!value.is_null()) rows[row].values[i] = as_integer(value, here, 0, kMostCounted);
        ++row;
      }
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      TraceOp& op = ops[static_cast<std::size_t>(of[row])];
      if (op.counters) fail(place + "/op", "expected each operation once, got " + std::to_string(of[row]) + " twice");
      op.counters = std::make_shared<const KernelCounters>(rows[row]);
    }
  }

  element document_;
  std::vector<std::string> strings_;
  std::vector<LaunchShape> shapes_;
  std::vector<std::shared_ptr<const OperatorCall>> operators_;
};

}  // namespace

Trace read_trace(const std::filesystem::path& file) {
  std::string content = read_packed(file);
  content.reserve(content.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(content).get(document); error != simdjson::SUCCESS)
    throw InputError(file.string(), "", std::string("expected JSON, got: ") + simdjson::error_message(error));
  Trace trace = TraceReader(document, file.string()).read();
  validate(trace, file.string());
  return trace;
}

}  // namespace weft
