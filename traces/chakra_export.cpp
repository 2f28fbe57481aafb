#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "traces/chakra_weft.h"
#include "traces/packed_file.h"
#include "traces/trace_words.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerUs = 1'000'000'000;

// Of the kinds that ASTRA-sim simulates (its Workload::issue_coll_comm).
std::optional<ChakraCollective> simulated_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return ChakraCollective::all_reduce;
    case CollectiveKind::all_gather:
      return ChakraCollective::all_gather;
    case CollectiveKind::reduce_scatter:
      return ChakraCollective::reduce_scatter;
    case CollectiveKind::all_to_all:
      return ChakraCollective::all_to_all;
    case CollectiveKind::broadcast:
      return ChakraCollective::broadcast;
    default:
      return std::nullopt;
  }
}

std::vector<std::int64_t> integers(const std::vector<std::uint32_t>& values) { return {values.begin(), values.end()}; }

class RankWriter {
 public:
  RankWriter(const Trace& trace, const TraceRank& rank, const ChakraGroups& groups, std::size_t& replayed)
      : trace_(trace), rank_(rank), groups_(groups), replayed_(replayed) {}

  ChakraFile write() {
    write_metadata();
    if (!rank_.ops.empty()) host_us_ = whole_us(rank_.ops.front().issued);
    for (std::uint32_t i = 0; i < rank_.ops.size(); ++i) {
      write_host(i);
      write_op(i);
    }
    return std::move(file_);
  }

 private:
  // Ids begin at 1: 0 is what a protobuf message has that says nothing.
  static std::uint64_t host_id(std::uint32_t op) { return 2 * std::uint64_t{op} + 1; }
  static std::uint64_t op_id(std::uint32_t op) { return 2 * std::uint64_t{op} + 2; }
  static std::int64_t whole_us(Time t) { return (t.count() + kFsPerUs / 2) / kFsPerUs; }

  void write_metadata() {
    ChakraAttributes& m = file_.metadata;
    m.set("schema", "weft-trace/1");
    m.set("source", trace_.source);
    m.set("world_size", std::int64_t{trace_.world_size});
    m.set("rank", std::int64_t{rank_.rank});
    m.set("device", rank_.device);
    m.set("compute_units", std::int64_t{rank_.compute_units});
    m.set("memory_bytes", rank_.memory_bytes);
    if (rank_.clock_moved != Time()) m.set("clock_moved_fs", rank_.clock_moved.count());
    std::vector<std::int64_t> times;
    for (const TraceIteration& it : rank_.iterations) {
      m.set("iteration", it.name);
      times.insert(times.end(), {it.start.count(), it.end.count()});
    }
    m.set("iterations_fs", std::move(times));
    write_traffic(m);
  }

  void write_traffic(ChakraAttributes& m) const {
    const TraceTraffic& traffic = rank_.traffic;
    if (traffic.size() == 0) return;
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < traffic.size(); ++i)
      times.insert(times.end(), {traffic.start[i].count(), traffic.duration[i].count()});
    m.set("traffic_fs", std::move(times));
    for (std::size_t c = 0; c < kTrafficCounterCount; ++c)
      if (!traffic.bytes[c].empty()) m.set("traffic_" + std::string(kTrafficCounterWords[c]), traffic.bytes[c]);
  }

  // The host's time up to the launch.
  void write_host(std::uint32_t i) {
    const TraceOp& op = rank_.ops[i];
    ChakraNode node;
    node.id = host_id(i);
    node.name = op.op.empty() ? "host" : op.op;
    if (last_on_host_) node.data_dependencies.push_back(*last_on_host_);
    const std::int64_t issued = whole_us(op.issued);
    node.duration_us = static_cast<std::uint64_t>(std::max<std::int64_t>(issued - host_us_, 0));
    host_us_ = std::max(host_us_, issued);
    node.attributes.set("is_cpu_op", true);
    last_on_host_ = node.id;
    file_.nodes.push_back(std::move(node));
  }

  void write_op(std::uint32_t i) {
    const TraceOp& op = rank_.ops[i];
    ChakraNode node;
    node.id = op_id(i);
    node.name = op.name;
    std::set<std::uint64_t> dependencies{host_id(i)};
    for (const std::uint32_t wait : op.waits) dependencies.insert(op_id(wait));
    const bool host = op.kind == TraceOpKind::host_wait;
    node.attributes.set("is_cpu_op", host);
    if (host) {
      host_us_ = std::max(host_us_, whole_us(op.start + op.duration));
      last_on_host_ = node.id;
    } else {
      if (const auto [last, first] = last_on_stream_.try_emplace(op.stream, node.id); !first) {
        dependencies.insert(last->second);
        last->second = node.id;
      }
      Time& rest = rest_of_stream_[op.stream];
      rest += op.duration;
      const std::int64_t us = std::max<std::int64_t>(whole_us(rest), 0);
      rest -= Time(us * kFsPerUs);
      node.duration_us = static_cast<std::uint64_t>(us);
      node.attributes.set("stream", std::int64_t{op.stream});
    }
    node.data_dependencies.assign(dependencies.begin(), dependencies.end());
    if (op.collective) write_communication(*op.collective, node);
    write_record(op, node);
    file_.nodes.push_back(std::move(node));
  }

  // What other programs simulate.
  void write_communication(const TraceCollective& c, ChakraNode& node) {
    const auto kind = simulated_kind(c.kind);
    if (!kind || !c.elements || !c.type) {
      ++replayed_;
      return;
    }
    node.type = ChakraType::collective;
    node.attributes.set("comm_type", static_cast<std::int64_t>(*kind));
    node.attributes.set("comm_size", *c.elements * bytes_per_element(*c.type));
    const auto group = std::find(groups_.begin(), groups_.end(), c.group_ranks);
    if (group != groups_.end()) node.attributes.set("pg_name", std::to_string(group - groups_.begin() + 1));
  }

  // What makes the same trace of it again.
  static void write_record(const TraceOp& op, ChakraNode& node) {
    ChakraAttributes& a = node.attributes;
    const auto text = [&](const char* name, const std::string& value) {
      if (!value.empty()) a.set(name, value);
    };
    a.set("kind", to_string(op.kind));
    text("op", op.op);
    text("layer", op.layer);
    a.set("phase", to_string(op.phase));
    if (op.iteration) a.set("iteration", std::int64_t{*op.iteration});
    a.set("correlation", op.correlation);
    a.set("times_fs", std::vector<std::int64_t>{op.issued.count(), op.issue_duration.count(), op.start.count(),
                                                op.duration.count()});
    if (op.shape) {
      const LaunchShape& s = *op.shape;
      std::vector<std::int64_t> launch{s.grid[0],  s.grid[1],  s.grid[2],  s.block[0],
                                       s.block[1], s.block[2], s.registers_per_thread, s.shared_memory_bytes};
      if (s.cluster_blocks > 1) launch.push_back(s.cluster_blocks);
      a.set("launch", launch);
    }
    if (op.bytes != Bytes()) a.set("bytes", op.bytes.count());
    text("direction", op.copy_direction);
    if (!op.waits.empty()) a.set("waits", integers(op.waits));
    if (op.counters) {
      std::vector<std::int64_t> values;
      for (const auto& value : op.counters->values) values.push_back(value.value_or(-1));
      a.set("counters", std::move(values));
    }
    if (op.launched_by) {
      a.set("operator", op.launched_by->name);
      std::vector<std::int64_t> element_bytes;
      for (const OperatorInput& input : op.launched_by->inputs) {
        node.input_shapes +=
            fmt::format("{}[{}]", node.input_shapes.empty() ? "[" : ", ", fmt::join(input.sizes, ", "));
        element_bytes.push_back(input.element_bytes);
      }
      node.input_shapes += node.input_shapes.empty() ? "[]" : "]";
      a.set("input_element_bytes", std::move(element_bytes));
    }
    if (!op.collective) return;
    a.set("collective", to_string(op.collective->kind));
    if (op.collective->elements) a.set("elements", *op.collective->elements);
    if (op.collective->type) a.set("dtype", to_string(*op.collective->type));
    a.set("group_size", std::int64_t{op.collective->group_size});
    if (!op.collective->group_ranks.empty()) a.set("group_ranks", integers(op.collective->group_ranks));
    text("group_name", op.collective->group_name);
    text("algorithm", op.collective->algorithm);
    text("protocol", op.collective->protocol);
    if (op.collective->channels != 0) a.set("channels", std::int64_t{op.collective->channels});
    if (op.collective->distance != 1) a.set("distance", std::int64_t{op.collective->distance});
    if (op.collective->first) a.set("first", std::int64_t{*op.collective->first});
  }

  const Trace& trace_;
  const TraceRank& rank_;
  const ChakraGroups& groups_;
  std::size_t& replayed_;
  ChakraFile file_;
  std::int64_t host_us_ = 0;  // until when the host's nodes have lasted
  std::optional<std::uint64_t> last_on_host_;
  std::map<std::uint32_t, std::uint64_t> last_on_stream_;
  std::map<std::uint32_t, Time> rest_of_stream_;  // what whole microseconds have left over
};

}  // namespace

ChakraGroups groups_of(const Trace& trace) {
  std::set<std::vector<std::uint32_t>> groups;
  for (const TraceRank& rank : trace.ranks)
    for (const TraceOp& op : rank.ops)
      if (op.collective && !op.collective->group_ranks.empty() && op.collective->group_ranks.size() < trace.world_size)
        groups.insert(op.collective->group_ranks);
  return {groups.begin(), groups.end()};
}

ChakraFile chakra_of_rank(const Trace& trace, std::size_t rank_index, const ChakraGroups& groups,
                          std::size_t& replayed) {
  return RankWriter(trace, trace.ranks[rank_index], groups, replayed).write();
}

std::vector<std::filesystem::path> export_chakra(const Trace& trace, const std::filesystem::path& prefix,
                                                 std::vector<std::string>& notes) {
  validate(trace, trace.source);
  const ChakraGroups groups = groups_of(trace);
  std::vector<std::filesystem::path> files;
  std::size_t replayed = 0;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    files.emplace_back(fmt::format("{}.{}.et", prefix.string(), trace.ranks[r].rank));
    write_chakra(chakra_of_rank(trace, r, groups, replayed), files.back());
  }
  if (!groups.empty()) {
    std::string json;
    for (std::size_t g = 0; g < groups.size(); ++g)
      json += fmt::format("{}\"{}\": [{}]", g == 0 ? "{\n  " : ",\n  ", g + 1, fmt::join(groups[g], ", "));
    files.emplace_back(prefix.string() + ".groups.json");
    write_atomically(files.back(), json + "\n}\n");
  }
  if (replayed != 0)
    notes.push_back(fmt::format(
        "{} collectives have no size, or are of a kind that ASTRA-sim does not have: computations of the recorded time",
        replayed));
  return files;
}

}  // namespace weft
