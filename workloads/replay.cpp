#include "workloads/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/error.h"
#include "workloads/address_plan.h"
#include "workloads/host_clock.h"
#include "workloads/rank_meetings.h"
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

class RankReplay {
 public:
  RankReplay(const Graph& graph, const ReplaySpec& spec, std::uint32_t iterations, const AddressPlan& plan)
      : graph_(graph), spec_(spec), iterations_(iterations), plan_(plan), streams_(dense_streams(graph, iterations)) {}

  [[nodiscard]] std::vector<std::int32_t> priorities() const {
    std::vector<std::int32_t> by_stream(streams_.size(), 0);
    for (const std::uint32_t urgent : graph_.urgent_streams) {
      if (const auto stream = streams_.find(urgent); stream != streams_.end()) by_stream[stream->second.value] = 1;
    }
    for (const Node& node : graph_.nodes) {
      if (!spec_.high_priority || node.kind != NodeKind::collective || node.iteration >= iterations_) continue;
      by_stream[streams_.at(node.recorded->stream).value] = 1;
    }
    return by_stream;
  }
  // `meetings` by node. A collective of one GPU is left out.
  [[nodiscard]] Program program_with(const std::vector<Meeting>& meetings) const {
    Program program;
    program.priorities = priorities();
    program.iterations = iterations_;
    program.samples_per_iteration = graph_.samples_per_iteration;
    program.tokens_per_iteration = graph_.tokens_per_iteration;
    HostClock host(graph_, spec_.host_time_scale);
    std::vector<std::optional<OpId>> op_of(graph_.nodes.size());
    program.step_ends.resize(graph_.iteration_lengths.empty() ? 0 : iterations_);
    const std::vector<Time> device_ends = recorded_device_ends();
    Time kept;  // host time of operations that were left out
    std::vector<bool> begun(streams_.size(), false);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.iteration >= iterations_) continue;
      const Time delay = kept + host.delay_before(node);
      const bool left_out = node.kind == NodeKind::collective && meetings[i].group.size() == 1;
      kept = left_out ? delay : Time(0);
      if (!program.step_ends.empty()) {
        program.step_ends[node.iteration] = host.step_end(device_ends[node.iteration]);
        program.step_ends[node.iteration].host += kept;
      }
      if (left_out) continue;
      ProgramOp op = place(node, plan_);
      op.host_delay = delay;
      op.measured_alone = node.recorded->alone.value_or(Time(0));
      op.measured_overlapped = node.recorded->overlapped;
      if (node.kind != NodeKind::host_wait) op.stream = streams_.at(node.recorded->stream);
      op.waits = waits_of(node, op, op_of, program);
      const bool first = node.kind != NodeKind::host_wait && !begun[op.stream.value];
      if (first) begun[op.stream.value] = true;
      const Time late = node.recorded->started - node.recorded->issued;
      if (first && late > kLaunching && !waited_for_others(node)) {
        op.start_delay = late;
      } else if (node.recorded->late > Time(0)) {
        op.start_delay = node.recorded->late;
      } else if (!first && node.recorded->behind) {
        op.start_delay = std::max(Time(0), *node.recorded->behind - spec_.device_latency);
      }
      if (node.kind == NodeKind::collective) {
        const Meeting& meeting = meetings[i];
        op.collective.kind = node.collective.kind;
        op.collective.bytes = meeting.bytes;
        op.collective.type = node.collective.type;
        op.collective.sequence = meeting.sequence;
        op.collective.group = meeting.group;
        op.collective.send_address = op.collective.receive_address = meeting.buffer;
        op.start_delay = meeting.late;
      }
      op_of[i] = OpId{static_cast<std::uint32_t>(program.ops.size())};
      program.ops.push_back(std::move(op));
    }
    if (graph_.begins_with) program.begins_with = op_of[graph_.begins_with->value];
    return program;
  }

 private:
  // Whether it started when others had ended for which it waits, or may have.
  [[nodiscard]] bool waited_for_others(const Node& node) const {
    return node.kind == NodeKind::collective || std::ranges::any_of(node.dependencies, [&](OpId dependency) {
             const Node& other = graph_.nodes[dependency.value];
             if (other.kind == NodeKind::host_wait || other.recorded->stream == node.recorded->stream) return false;
             return other.iteration != node.iteration ||
                    other.recorded->started + other.recorded->duration + kLaunching >= node.recorded->started;
           });
  }
  // By iteration, since its start.
  [[nodiscard]] std::vector<Time> recorded_device_ends() const {
    std::vector<Time> ends(iterations_);
    for (const Node& node : graph_.nodes) {
      if (node.iteration >= iterations_ || node.kind == NodeKind::host_wait) continue;
      ends[node.iteration] = std::max(ends[node.iteration], node.recorded->started + node.recorded->duration);
    }
    return ends;
  }
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

  const Graph& graph_;
  const ReplaySpec& spec_;
  std::uint32_t iterations_;
  const AddressPlan& plan_;
  std::map<std::uint32_t, StreamId> streams_;
};

// How long the recorded rank waited in a collective for the last one to come.
Time waited(const Graph& graph, const ReplaySpec& spec, std::size_t node) {
  if (spec.collective_times.empty()) return Time(0);
  return std::max(Time(0), graph.nodes[node].recorded->duration - spec.collective_times[node]);
}

// Of GPU `gpu` where all replay the same rank, by node.
std::vector<Meeting> meetings_of_replica(const Graph& graph, const ReplaySpec& spec, std::uint32_t iterations,
                                         const ReplayGroups& groups, const std::vector<std::uint64_t>& buffers,
                                         GpuId gpu) {
  std::vector<Meeting> meetings(graph.nodes.size());
  std::map<GpuGroup, std::uint32_t> sequences;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.kind != NodeKind::collective || node.iteration >= iterations) continue;
    GpuGroup group = groups.group_of(gpu, node.collective, node_path(i));
    const std::uint32_t sequence = sequences[group]++;
    const Time late = gpu == group.back() ? waited(graph, spec, i) : Time(0);
    meetings[i] = {std::move(group), sequence, buffers[i], node.collective.bytes, late};
  }
  return meetings;
}

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
  WEFT_CHECK(graph.iteration_lengths.empty() || graph.iteration_lengths.size() >= graph.iterations,
             "a length for each");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].recorded) throw InputError(graph.name, node_path(i), "expected a recorded operation, got none");
  }
}

std::string numbers_of(const std::vector<std::uint32_t>& ranks) { return fmt::format("{}", fmt::join(ranks, ", ")); }

void check_ranks(const std::vector<Graph>& ranks, const ReplaySpec& spec) {
  WEFT_CHECK(!ranks.empty(), "no rank to replay");
  WEFT_CHECK(spec.collective_times.empty(), "ranks that are all there wait for each other by themselves");
  const Graph& first = ranks.front();
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < first.recorded_world; ++rank) {
    if (std::none_of(ranks.begin(), ranks.end(), [&](const Graph& g) { return g.recorded_rank == rank; }))
      missing.push_back(rank);
  }
  const std::string or_one = "or one rank for all GPUs (workload.rank)";
  if (!missing.empty()) {
    throw InputError(first.name, "/ranks",
                     fmt::format("expected all {} ranks of the recorded run, {}, got {} without {}",
                                 first.recorded_world, or_one, ranks.size(), numbers_of(missing)));
  }
  if (spec.gpus != ranks.size()) {
    throw InputError(
        first.name, "/ranks",
        fmt::format("expected as many GPUs as recorded ranks ({}), {}, got {} GPUs", ranks.size(), or_one, spec.gpus));
  }
  for (const Graph& graph : ranks) {
    if (graph.iterations == first.iterations) continue;
    throw InputError(graph.name, "/ranks",
                     fmt::format("expected the {} iterations of rank {} on rank {} too, got {}", first.iterations,
                                 first.recorded_rank, graph.recorded_rank, graph.iterations));
  }
}

}  // namespace

std::vector<Program> replay(const Graph& graph, const ReplaySpec& spec) {
  validate(graph, graph.name);
  check(graph, spec);
  const std::uint32_t iterations = spec.iterations == 0 ? graph.iterations : spec.iterations;
  const AddressPlan plan = plan_addresses(graph);
  const std::vector<std::uint64_t> buffers = collective_buffers(graph, plan.end);
  const ReplayGroups groups(graph, spec.gpus);
  const RankReplay rank(graph, spec, iterations, plan);
  std::vector<Program> programs;
  for (std::uint32_t gpu = 0; gpu < spec.gpus; ++gpu)
    programs.push_back(rank.program_with(meetings_of_replica(graph, spec, iterations, groups, buffers, GpuId{gpu})));
  return programs;
}

std::vector<Program> replay_ranks(const std::vector<Graph>& ranks, const ReplaySpec& spec) {
  check_ranks(ranks, spec);
  std::vector<AddressPlan> plans;
  std::uint64_t end = 0;
  for (const Graph& graph : ranks) {
    validate(graph, graph.name);
    check(graph, spec);
    plans.push_back(plan_addresses(graph));
    end = std::max(end, plans.back().end);
  }
  const std::uint32_t iterations = spec.iterations == 0 ? ranks.front().iterations : spec.iterations;
  const std::vector<std::vector<Meeting>> meetings = meetings_of_ranks(ranks, iterations, end);
  std::vector<Program> programs;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    programs.push_back(RankReplay(ranks[r], spec, iterations, plans[r]).program_with(meetings[r]));
  return programs;
}

}  // namespace weft
