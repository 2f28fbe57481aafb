#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/packed_file.h"
#include "traces/trace_file.h"
#include "traces/trace_traffic.h"
#include "traces/trace_words.h"

namespace weft {
namespace {

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {}

  std::string write() {
    // Ranks first, into their own buffer: they fill the tables that stand before them in the file.
    std::string ranks;
    for (const TraceRank& rank : trace_.ranks) {
      if (!ranks.empty()) ranks += ",\n";
      write_rank(rank, ranks);
    }
    std::string out = fmt::format("{{\"schema\":\"weft-trace/1\",\"source\":{},\"world_size\":{},\n\"strings\":[",
                                  quoted(trace_.source), trace_.world_size);
    for (std::size_t i = 0; i < strings_.size(); ++i) out += fmt::format("{}\n{}", i ? "," : "", quoted(strings_[i]));
    out += "],\n\"shapes\":[";
    for (std::size_t i = 0; i < shapes_.size(); ++i) out += fmt::format("{}{}", i ? "," : "", shapes_[i]);
    out += "],\n\"operators\":[";
    for (std::size_t i = 0; i < operators_.size(); ++i) out += fmt::format("{}\n{}", i ? "," : "", operators_[i]);
    out += "],\n\"ranks\":[";
    out += ranks;
    return out += "]}\n";
  }

 private:
  static std::string quoted(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  std::size_t string_index(const std::string& text) {
    const auto [found, added] = string_numbers_.try_emplace(text, strings_.size());
    if (added) strings_.push_back(found->first);
    return found->second;
  }

  std::int64_t shape_index(const std::optional<LaunchShape>& shape) {
    if (!shape) return -1;
    std::string text =
        fmt::format("[{},{},{},{},{},{},{},{}", shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
                    shape->block[1], shape->block[2], shape->registers_per_thread, shape->shared_memory_bytes);
    if (shape->cluster_blocks > 1) text += fmt::format(",{}", shape->cluster_blocks);
    text += "]";
    const auto [found, added] = shape_numbers_.try_emplace(text, static_cast<std::int64_t>(shapes_.size()));
    if (added) shapes_.push_back(std::move(text));
    return found->second;
  }

  std::int64_t operator_index(const OperatorCall* call) {
    if (!call) return -1;
    const auto [known, unseen] = operator_seen_.try_emplace(call, 0);
    if (!unseen) return known->second;
    const auto [found, added] = operator_numbers_.try_emplace(*call, static_cast<std::int64_t>(operators_.size()));
    known->second = found->second;
    if (!added) return found->second;
    std::string text = fmt::format("[{}", string_index(call->name));
    for (const OperatorInput& input : call->inputs) {
      text += fmt::format(",[{}", input.element_bytes);
      for (const std::int64_t size : input.sizes) text += fmt::format(",{}", size);
      text += "]";
    }
    operators_.push_back(text + "]");
    return found->second;
  }

  template <class Value>
  static void write_column(const char* name, const std::vector<TraceOp>& ops, std::string& out, Value value) {
    out += fmt::format(",\n\"{}\":[", name);
    auto end = std::back_inserter(out);
    for (std::size_t i = 0; i < ops.size(); ++i) fmt::format_to(end, "{}{}", i ? "," : "", value(ops[i]));
    out += "]";
  }

  void write_rank(const TraceRank& rank, std::string& out) {
    out += fmt::format("{{\"rank\":{},\"device\":{},\"compute_units\":{},\"memory_bytes\":{},", rank.rank,
                       quoted(rank.device), rank.compute_units, rank.memory_bytes);
    if (rank.clock_moved != Time()) out += fmt::format("\"clock_moved_fs\":{},", rank.clock_moved.count());
    out += "\n\"iterations\":[";
    for (std::size_t i = 0; i < rank.iterations.size(); ++i) {
      const TraceIteration& it = rank.iterations[i];
      out += fmt::format("{}[{},{},{}]", i ? "," : "", string_index(it.name), it.start.count(), it.end.count());
    }
    out += fmt::format("],\n\"ops\":{{\"count\":{}", rank.ops.size());
    const auto& ops = rank.ops;
    write_column("kind", ops, out, [&](const TraceOp& op) { return string_index(to_string(op.kind)); });
    write_column("name", ops, out, [&](const TraceOp& op) { return string_index(op.name); });
    write_column("op", ops, out, [&](const TraceOp& op) { return string_index(op.op); });
    write_column("layer", ops, out, [&](const TraceOp& op) { return string_index(op.layer); });
    write_column("phase", ops, out, [&](const TraceOp& op) { return string_index(to_string(op.phase)); });
    write_column("iteration", ops, out,
                 [](const TraceOp& op) { return op.iteration ? std::int64_t{*op.iteration} : std::int64_t{-1}; });
    write_column("stream", ops, out, [](const TraceOp& op) { return op.stream; });
    write_column("correlation", ops, out, [](const TraceOp& op) { return op.correlation; });
    write_column("issued_fs", ops, out, [](const TraceOp& op) { return op.issued.count(); });
    write_column("issue_duration_fs", ops, out, [](const TraceOp& op) { return op.issue_duration.count(); });
    write_column("start_fs", ops, out, [](const TraceOp& op) { return op.start.count(); });
    write_column("duration_fs", ops, out, [](const TraceOp& op) { return op.duration.count(); });
    write_column("shape", ops, out, [&](const TraceOp& op) { return shape_index(op.shape); });
    write_column("operator", ops, out, [&](const TraceOp& op) { return operator_index(op.launched_by.get()); });
    write_column("bytes", ops, out, [](const TraceOp& op) { return op.bytes.count(); });
    write_column("direction", ops, out, [&](const TraceOp& op) { return string_index(op.copy_direction); });
    out += "},\n\"collectives\":[";
    bool first = true;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!ops[i].collective) continue;
      out += fmt::format("{}{}", first ? "" : ",", collective_row(i, *ops[i].collective));
      first = false;
    }
    out += "],\n\"waits\":[";
    first = true;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].waits.empty()) continue;
      out += fmt::format("{}[{},{}]", first ? "" : ",", i, fmt::join(ops[i].waits, ","));
      first = false;
    }
    out += "]";
    write_counters(ops, out);
    append_traffic(rank.traffic, out);
    out += "}";
  }

  // Where there are any, so that other files stay as they are; counters that no kernel has get no column.
  static void write_counters(const std::vector<TraceOp>& ops, std::string& out) {
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].counters) of.push_back(i);
    if (of.empty()) return;
    out += fmt::format(",\n\"counters\":{{\"op\":[{}]", fmt::join(of, ","));
    for (std::size_t c = 0; c < kKernelCounterCount; ++c) {
      const auto value = [&](std::size_t op) { return ops[op].counters->values[c]; };
      if (std::none_of(of.begin(), of.end(), [&](std::size_t op) { return value(op).has_value(); })) continue;
      out += fmt::format(",\n\"{}\":[", kKernelCounterWords[c]);
      for (std::size_t i = 0; i < of.size(); ++i)
        out += fmt::format("{}{}", i ? "," : "", value(of[i]) ? std::to_string(*value(of[i])) : "null");
      out += "]";
    }
    out += "}";
  }

  std::string collective_row(std::size_t op, const TraceCollective& c) {
    const std::string row = fmt::format("[{},{},{},{},{},[{}],{}", op, string_index(to_string(c.kind)),
                                        c.elements ? std::to_string(*c.elements) : "null",
                                        c.type ? std::to_string(string_index(to_string(*c.type))) : "null",
                                        c.group_size, fmt::join(c.group_ranks, ","), string_index(c.group_name));
    const bool has_peers = c.distance != 1 || c.first;
    if (c.algorithm.empty() && c.protocol.empty() && c.channels == 0 && !has_peers) return row + "]";
    const std::string how =
        fmt::format("{},{},{},{}", row, string_index(c.algorithm), string_index(c.protocol), c.channels);
    if (!has_peers) return how + "]";
    return how + fmt::format(",{},{}]", c.distance, c.first ? std::to_string(*c.first) : "null");
  }

  const Trace& trace_;
  std::vector<std::string_view> strings_;
  std::unordered_map<std::string, std::size_t> string_numbers_;
  std::vector<std::string> shapes_;
  std::map<std::string, std::int64_t> shape_numbers_;
  std::vector<std::string> operators_;
  std::map<OperatorCall, std::int64_t> operator_numbers_;
  std::unordered_map<const OperatorCall*, std::int64_t> operator_seen_;  // operations share them
};

}  // namespace

void write_trace(const Trace& trace, const std::filesystem::path& file) {
  validate(trace, trace.source);
  write_atomically(file, Writer(trace).write());
}

}  // namespace weft
