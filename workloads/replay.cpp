#include "workloads/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/error.h"
#include "workloads/address_plan.h"
#include "workloads/replay_groups.h"

namespace weft {
namespace {

std::string node_path(std::size_t node) { return fmt::format("/nodes/{}", node); }

std::map<std::uint32_t, StreamId> dense_streams(const Graph& graph, std::uint32_t iterations) {
  std::map<std::uint32_t, StreamId> streams;
  for (const Node& node : graph.nodes) {
    if (node.iteration < iterations && node.kind != NodeKind::host_wait) streams[node.recorded->stream] = {};
  }
  std::uint32_t next = 0;
  for (auto& [recorded, dense] : streams) dense = StreamId{next++};
  return streams;
}

// One buffer for the n-th collective of every iteration, large enough for the largest, behind the tensors.
std::vector<std::uint64_t> collective_buffers(const Graph& graph, std::uint64_t after) {
  std::vector<std::uint64_t> position(graph.nodes.size()), bytes, address;
  std::map<std::uint32_t, std::uint64_t> count;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != NodeKind::collective) continue;
    position[i] = count[graph.nodes[i].iteration]++;
    if (position[i] == bytes.size()) bytes.push_back(0);
    auto& size = bytes[position[i]];
    size = std::max(size, static_cast<std::uint64_t>(graph.nodes[i].collective.bytes.count()));
  }
  DeviceAllocator allocator(after);
  address.reserve(bytes.size());
  for (const std::uint64_t size : bytes) address.push_back(allocator.allocate(size));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind == NodeKind::collective) position[i] = address[position[i]];
  }
  return position;
}

// The host's clock over the recorded operations: gives each its delay.
class HostClock {
 public:
  HostClock(const Graph& graph, double scale) : graph_(graph), scale_(scale) {}

  Time delay_before(const Node& node) {
    const Recorded& recorded = *node.recorded;
    if (!started_ || node.iteration != iteration_) enter(node.iteration);
    const Time delay = recorded.issued - free_at_;
    free_at_ = recorded.issued;
    if (node.kind == NodeKind::host_wait) free_at_ += recorded.duration;
    // Calls that overlap in the record (several host threads) leave no time of the host's own between them.
    const double own = std::max<double>(0, static_cast<double>(delay.count()));
    return Time(static_cast<std::int64_t>(std::llround(own * scale_)));
  }

 private:
  // Moves the host's last moment into the clock of `iteration`, which starts at 0.
  void enter(std::uint32_t iteration) {
    const auto& starts = graph_.iteration_starts;
    if (started_ && iteration < starts.size()) {
      free_at_ -= starts[iteration] - starts[iteration_];
    } else {
      free_at_ = Time(0);
    }
    iteration_ = iteration;
    started_ = true;
  }

  const Graph& graph_;
  double scale_;
  bool started_ = false;
  Time free_at_;  // when the host last issued or stopped waiting, since the start of its iteration
  std::uint32_t iteration_ = 0;
};

class RankReplay {
 public:
  RankReplay(const Graph& graph, const ReplaySpec& spec, std::uint32_t iterations)
      : graph_(graph),
        spec_(spec),
        iterations_(iterations),
        plan_(plan_addresses(graph)),
        streams_(dense_streams(graph, iterations)),
        buffers_(collective_buffers(graph, plan_.end)),
        groups_(graph, spec.gpus) {}

  [[nodiscard]] Program program_of(GpuId gpu) const {
    Program program;
    program.priorities.assign(streams_.size(), 0);
    program.iterations = iterations_;
    program.samples_per_iteration = graph_.samples_per_iteration;
    program.tokens_per_iteration = graph_.tokens_per_iteration;
    HostClock host(graph_, spec_.host_time_scale);
    std::map<std::vector<GpuId>, std::uint32_t> sequences;
    std::vector<std::optional<OpId>> op_of(graph_.nodes.size());
    Time kept;  // host time of operations that were left out
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.iteration >= iterations_) continue;
      const Time delay = kept + host.delay_before(node);
      kept = Time(0);
      std::vector<GpuId> group;
      if (node.kind == NodeKind::collective) group = groups_.group_of(gpu, node.collective, node_path(i));
      if (group.size() == 1) {
        kept = delay;
        continue;
      }
      ProgramOp op = place(node, plan_);
      op.host_delay = delay;
      op.measured_alone = node.recorded->alone.value_or(Time(0));
      if (node.kind != NodeKind::host_wait) op.stream = streams_.at(node.recorded->stream);
      op.waits = waits_of(node, op, op_of, program);
      if (node.kind == NodeKind::collective) {
        op.collective.kind = node.collective.kind;
        op.collective.bytes = node.collective.bytes;
        op.collective.type = node.collective.type;
        op.collective.sequence = sequences[group]++;
        op.collective.group = std::move(group);
        op.collective.send_address = buffers_[i];
        if (gpu == op.collective.group.back()) op.start_delay = waited(i);
        op.collective.receive_address = buffers_[i];
      }
      op_of[i] = OpId{static_cast<std::uint32_t>(program.ops.size())};
      program.ops.push_back(std::move(op));
    }
    return program;
  }

 private:
  [[nodiscard]] std::vector<OpId> waits_of(const Node& node, const ProgramOp& op,
                                           const std::vector<std::optional<OpId>>& op_of,
                                           const Program& program) const {
    std::vector<OpId> waits;
    for (const OpId dependency : node.dependencies) {
      const auto& earlier = op_of[dependency.value];
      if (!earlier) continue;
      const ProgramOp& other = program.ops[earlier->value];
      if (other.kind == ProgramOpKind::host_wait) continue;
      if (op.kind != ProgramOpKind::host_wait && other.stream == op.stream) continue;
      waits.push_back(*earlier);
    }
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    return waits;
  }

  // How long the recorded rank waited in a collective for the last one to come.
  [[nodiscard]] Time waited(std::size_t node) const {
    if (spec_.collective_times.empty()) return Time(0);
    return std::max(Time(0), graph_.nodes[node].recorded->duration - spec_.collective_times[node]);
  }

  const Graph& graph_;
  const ReplaySpec& spec_;
  std::uint32_t iterations_;
  AddressPlan plan_;
  std::map<std::uint32_t, StreamId> streams_;
  std::vector<std::uint64_t> buffers_;
  ReplayGroups groups_;
};

void check(const Graph& graph, const ReplaySpec& spec) {
  if (spec.gpus == 0) throw InputError("", "/gpus", "expected 1 or more, got 0");
  if (!(spec.host_time_scale >= 0) || std::isinf(spec.host_time_scale)) {
    throw InputError("", "/workload/host_time_scale", fmt::format("expected 0 or more, got {}", spec.host_time_scale));
  }
  if (spec.iterations > graph.iterations) {
    throw InputError(graph.name, "/iterations",
                     fmt::format("expected at most the {} recorded ones, got {}", graph.iterations, spec.iterations));
  }
  WEFT_CHECK(spec.collective_times.empty() || spec.collective_times.size() == graph.nodes.size(),
             "a time for each node");
  if (!graph.iteration_starts.empty() && graph.iteration_starts.size() < graph.iterations) {
    throw InputError(graph.name, "/iteration_starts",
                     fmt::format("expected {}, got {}", graph.iterations, graph.iteration_starts.size()));
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].recorded) throw InputError(graph.name, node_path(i), "expected a recorded operation, got none");
  }
}

}  // namespace

std::vector<Program> replay(const Graph& graph, const ReplaySpec& spec) {
  validate(graph, graph.name);
  check(graph, spec);
  const RankReplay rank(graph, spec, spec.iterations == 0 ? graph.iterations : spec.iterations);
  std::vector<Program> programs;
  for (std::uint32_t gpu = 0; gpu < spec.gpus; ++gpu) programs.push_back(rank.program_of(GpuId{gpu}));
  return programs;
}

std::vector<Program> single_collective(CollectiveKind kind, Bytes bytes, DataType type, std::uint32_t gpus,
                                       std::uint32_t iterations) {
  if (gpus < 2) throw InputError("", "/gpus", fmt::format("expected 2 or more for a collective, got {}", gpus));
  if (iterations == 0) throw InputError("", "/iterations", "expected 1 or more, got 0");
  const std::int64_t element = bytes_per_element(type);
  if (bytes.count() <= 0 || bytes.count() % element != 0) {
    throw InputError("", "/workload/bytes",
                     fmt::format("expected a positive multiple of {}, got {}", element, bytes.count()));
  }
  Program program;
  program.priorities = {0};
  program.iterations = iterations;
  program.memory.push_back({OpId{0}, MemoryClass::communication, bytes, to_string(kind)});
  for (std::uint32_t i = 0; i < iterations; ++i) {
    ProgramOp op;
    op.kind = ProgramOpKind::collective;
    op.name = to_string(kind);
    op.iteration = i;
    op.collective.kind = kind;
    op.collective.bytes = bytes;
    op.collective.type = type;
    op.collective.group = GpuGroup::first(gpus);
    op.collective.sequence = i;
    op.collective.send_address = kFirstAddress;
    op.collective.receive_address = kFirstAddress;
    program.ops.push_back(std::move(op));
  }
  return std::vector<Program>(gpus, program);
}

}  // namespace weft
