#include "traces/replay_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/error.h"
#include "traces/copy_shape.h"
#include "traces/kernel_demand.h"
#include "traces/late_starts.h"
#include "traces/launch_position.h"
#include "traces/replay_tensors.h"
#include "traces/stream_priority.h"
#include "traces/trace_words.h"

namespace weft {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(const Trace& trace, std::size_t rank_index, bool fit_overlapped)
      : trace_(trace),
        rank_index_(rank_index),
        rank_(trace.ranks[rank_index]),
        fit_overlapped_(fit_overlapped),
        tensors_(graph_.tensors) {}

  Graph build() {
    graph_.name = trace_.source;
    graph_.iterations = static_cast<std::uint32_t>(std::max<std::size_t>(rank_.iterations.size(), 1));
    graph_.recorded_rank = rank_.rank;
    graph_.recorded_world = trace_.world_size;
    graph_.urgent_streams = urgent_streams(rank_);
    for (const TraceIteration& iteration : rank_.iterations) {
      graph_.iteration_starts.push_back(iteration.start - rank_.iterations.front().start);
      graph_.iteration_lengths.push_back(iteration.end - iteration.start);
    }
    const std::vector<LaunchPosition> positions = launch_positions(rank_);
    alone_ = by_operation(positions, &LaunchPosition::alone);
    behind_ = by_operation(positions, &LaunchPosition::behind);
    late_ = late_starts(rank_);
    overlapped_.resize(rank_.ops.size());
    if (fit_overlapped_) take_overlapped(positions);
    node_of_.resize(rank_.ops.size());
    find_lookups();
    for (std::uint32_t i = 0; i < rank_.ops.size(); ++i)
      if (rank_.ops[i].iteration) add(i);
    if (graph_.nodes.empty())
      throw InputError(trace_.source, place(), "expected operations in an iteration, got none: nothing to replay");
    if (const auto first = begun_late(rank_)) graph_.begins_with = node_of_[*first];
    return std::move(graph_);
  }

 private:
  using Launch = std::tuple<std::string_view, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>, std::int64_t>;

  [[nodiscard]] std::string place() const { return "/ranks/" + std::to_string(rank_index_); }

  static Launch launch_of(const TraceOp& op) {
    const LaunchShape shape = op.shape.value_or(LaunchShape{});
    return {op.name, shape.grid, shape.block, op.bytes.count()};
  }

  // By operation: that of its launch position, or where this has none the median of the same launch elsewhere.
  [[nodiscard]] std::vector<std::optional<Time>> by_operation(const std::vector<LaunchPosition>& positions,
                                                              std::optional<Time> LaunchPosition::*time) const {
    std::vector<std::optional<Time>> found(rank_.ops.size());
    std::map<Launch, std::vector<Time>> elsewhere;
    for (const LaunchPosition& position : positions) {
      if (!(position.*time)) continue;
      for (const std::uint32_t i : position.ops) found[i] = position.*time;
      elsewhere[launch_of(rank_.ops[position.ops.front()])].push_back(*(position.*time));
    }
    std::map<Launch, Time> medians;
    for (auto& [launch, times] : elsewhere) medians[launch] = median(std::move(times));
    for (const LaunchPosition& position : positions) {
      if (position.*time) continue;
      const auto same = medians.find(launch_of(rank_.ops[position.ops.front()]));
      if (same == medians.end()) continue;
      for (const std::uint32_t i : position.ops) found[i] = same->second;
    }
    return found;
  }

  void take_overlapped(const std::vector<LaunchPosition>& positions) {
    for (const LaunchPosition& position : positions) {
      for (const std::uint32_t i : position.ops) {
        if (alone_[i]) continue;
        alone_[i] = position.shortest;
        overlapped_[i] = true;
      }
    }
  }

  void find_lookups() {
    for (const TraceOp& op : rank_.ops) {
      const auto lookup = op.launched_by ? embedding_lookup(*op.launched_by) : std::nullopt;
      if (lookup) lookups_.push_back(*lookup);
    }
    std::ranges::sort(lookups_);
    lookups_.erase(std::unique(lookups_.begin(), lookups_.end()), lookups_.end());
  }

  void add(std::uint32_t index) {
    const TraceOp& op = rank_.ops[index];
    Node node;
    node.name = op.name;
    node.layer = op.layer.empty() ? op.op : op.layer;
    node.phase = op.phase;
    node.iteration = *op.iteration;
    const Time start = rank_.iterations[*op.iteration].start;
    node.recorded = Recorded{op.stream,     op.issued - start,  op.start - start, op.duration,
                             alone_[index], overlapped_[index], behind_[index],   late_[index]};
    for (const std::uint32_t wait : op.waits)
      if (node_of_[wait]) node.dependencies.push_back(*node_of_[wait]);
    switch (op.kind) {
      case TraceOpKind::kernel:
        add_kernel(op, alone_[index], node);
        break;
      case TraceOpKind::memset:
        add_kernel(op, alone_[index], node);
        break;
      case TraceOpKind::copy:
        if (op.copy_direction == "HtoD" || op.copy_direction == "DtoH") {
          node.kind = NodeKind::copy;
          node.copy.bytes = op.bytes;
          node.copy.to_device = op.copy_direction == "HtoD";
        } else {
          add_kernel(op, alone_[index], node);
        }
        break;
      case TraceOpKind::collective:
        add_collective(op, index, node);
        break;
      case TraceOpKind::host_wait:
        node.kind = NodeKind::host_wait;
        break;
    }
    node_of_[index] = OpId{static_cast<std::uint32_t>(graph_.nodes.size())};
    graph_.nodes.push_back(std::move(node));
  }

  // AMD's profiles may lack the launch: one block of 256 threads a unit, which leaves the work to the demand.
  [[nodiscard]] LaunchShape shape_of(const TraceOp& op) const {
    if (op.kind != TraceOpKind::kernel) return copy_shape(op.bytes);
    LaunchShape shape;
    if (op.shape) {
      shape = *op.shape;
    } else {
      shape.grid[0] = std::max<std::uint32_t>(rank_.compute_units, 1);
      shape.block[0] = 256;
    }
    if (shape.registers_per_thread == 0) shape.registers_per_thread = LaunchShape{}.registers_per_thread;
    return shape;
  }

  void add_kernel(const TraceOp& op, std::optional<Time> alone, Node& node) {
    KernelFacts known{.call = op.launched_by.get(), .counters = op.counters.get(), .lookups = lookups_};
    if (op.bytes > Bytes()) known.bytes = op.bytes;
    if (alone) known.alone = MeasuredAlone{*alone, rank_.compute_units};
    KernelGuess guess = guess_kernel_demand(op.name, shape_of(op), known);
    place_tensors(op.stream, guess);
    node.kind = NodeKind::kernel;
    node.memory_operation = op.kind != TraceOpKind::kernel;
    node.kernel = std::move(guess.node);
  }

  void place_tensors(std::uint32_t stream, KernelGuess& guess) {
    const std::optional<TensorId> before = last_output_[stream];
    std::vector<std::optional<TensorId>> chosen(guess.tensors.size());
    std::vector<TensorId> in_use;  // by this kernel, and what it may read of the one before
    if (before) in_use.push_back(*before);
    if (before && !guess.node.reads.empty()) {
      // The largest input is the likeliest to be what the kernel before has made.
      std::uint32_t largest = guess.node.reads.front().tensor.value;
      for (const TensorUse& use : guess.node.reads)
        if (guess.tensors[use.tensor.value] > guess.tensors[largest]) largest = use.tensor.value;
      const std::int64_t wanted = guess.tensors[largest].count();
      const std::int64_t made = graph_.tensors[before->value].bytes.count();
      if (made >= wanted && made <= 2 * wanted) chosen[largest] = before;
    }
    const auto place_use = [&](TensorUse& use) {
      std::optional<TensorId>& id = chosen[use.tensor.value];
      if (!id) in_use.push_back(*(id = tensors_.take(guess.tensors[use.tensor.value], in_use)));
      use.tensor = *id;
    };
    for (TensorUse& use : guess.node.reads) place_use(use);
    for (TensorUse& use : guess.node.writes) place_use(use);
    if (!guess.node.writes.empty()) last_output_[stream] = guess.node.writes.front().tensor;
  }

  void add_collective(const TraceOp& op, std::uint32_t index, Node& node) const {
    const TraceCollective& c = *op.collective;
    if (!c.elements || !c.type)
      throw InputError(trace_.source, place() + "/ops/" + std::to_string(index) + " (" + op.name.substr(0, 80) + ")",
                       std::string("expected a collective with its number of elements and data type, got a ") +
                           to_string(c.kind) +
                           " without: profile with record_shapes=True or PyTorch 2.2 and newer to replay it");
    node.kind = NodeKind::collective;
    const auto channels = op.shape ? static_cast<std::uint32_t>(op.shape->blocks()) : 0;
    node.collective = {.kind = c.kind,
                       .bytes = Bytes(*c.elements * bytes_per_element(*c.type)),
                       .type = *c.type,
                       .group_size = c.group_size,
                       .group_ranks = c.group_ranks,
                       .communicator = c.group_name,
                       .channels = channels,
                       .distance = c.distance,
                       .first = c.first};
  }

  const Trace& trace_;
  std::size_t rank_index_;
  const TraceRank& rank_;
  bool fit_overlapped_;
  Graph graph_;
  ReplayTensors tensors_;
  std::vector<std::optional<Time>> alone_, behind_;  // by op
  std::vector<Time> late_;                           // by op
  std::vector<bool> overlapped_;                     // by op: alone_ is of the shortest one beside a collective
  std::vector<std::optional<OpId>> node_of_;         // by op
  std::vector<EmbeddingLookup> lookups_;
  std::map<std::uint32_t, std::optional<TensorId>> last_output_;  // by stream
};

}  // namespace

Graph graph_from_trace(const Trace& trace, std::size_t rank_index, bool fit_overlapped) {
  WEFT_CHECK(rank_index < trace.ranks.size(), "no such rank in the trace");
  return GraphBuilder(trace, rank_index, fit_overlapped).build();
}

std::vector<Graph> graphs_from_trace(const Trace& trace, bool fit_overlapped) {
  Time first = Time::max();
  for (const TraceRank& rank : trace.ranks)
    if (!rank.iterations.empty()) first = std::min(first, rank.iterations.front().start);
  std::vector<Graph> graphs;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    Graph& graph = graphs.emplace_back(graph_from_trace(trace, r, fit_overlapped));
    for (Time& start : graph.iteration_starts) start += trace.ranks[r].iterations.front().start - first;
  }
  return graphs;
}

}  // namespace weft
