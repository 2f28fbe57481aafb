#include "traces/capture/captured_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>

#include "traces/capture/captured_traffic.h"
#include "traces/kineto_names.h"
#include "traces/kineto_rank.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerNs = 1'000'000;
constexpr std::int64_t kMostElementsMoved = std::int64_t{1} << 50;  // more is damage

// ncclDataType_t (nccl.h), in its order.
constexpr std::array<DataType, 12> kNcclTypes{DataType::int8,  DataType::int8,  DataType::int32, DataType::int32,
                                              DataType::int64, DataType::int64, DataType::fp16,  DataType::fp32,
                                              DataType::fp64,  DataType::bf16,  DataType::fp8,   DataType::fp8};

bool is_sum(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::reduce;
}

class RankJoiner {
 public:
  RankJoiner(const CapturedProcess& process, std::int64_t device) : process_(process), device_(device) {
    out_.rank = kineto_rank(process.profile, 0, device);
    out_.origin_ns = earliest_time(process.profile);
    for (const CapturedCommunicator& communicator : process.communicators)
      if (communicator.device.value_or(device) == device) out_.communicators.push_back(communicator);
  }

  CapturedRank join() {
    index_operations();
    for (const CapturedDetail& detail : process_.details) {
      if (detail.event->device != device_) continue;
      const auto found = operations_.find(key(*detail.event));
      if (found == operations_.end()) continue;
      if (detail.graph_node != 0) nodes_.push_back({found->second, detail.graph_node});
      if (detail.collective) tell_collective(found->second, *detail.collective);
    }
    add_graph_waits();
    out_.rank.traffic = captured_traffic(process_, device_);
    return std::move(out_);
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;  // correlation, start, stream

  struct Node {
    std::uint32_t op;
    std::uint64_t node;
  };

  [[nodiscard]] Key key(const KinetoEvent& event) const {
    return {event.correlation, (event.start - out_.origin_ns) * kFsPerNs, static_cast<std::uint32_t>(event.stream)};
  }

  void index_operations() {
    const std::vector<TraceOp>& ops = out_.rank.ops;
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      if (ops[i].kind != TraceOpKind::host_wait)
        operations_.emplace(Key{ops[i].correlation, ops[i].start.count(), ops[i].stream}, i);
  }

  void tell_collective(std::uint32_t op, const CapturedCollective& captured) {
    if (!out_.rank.ops[op].collective) return;
    TraceCollective& collective = *out_.rank.ops[op].collective;
    collective.distance = 1;  // what the profile guessed
    collective.first.reset();
    std::uint32_t ranks = 0;
    for (const CapturedCommunicator& record : out_.communicators)
      if (record.id == captured.communicator) ranks = record.ranks;
    std::optional<std::uint32_t> peer;
    if (captured.function == "SendRecv" && captured.peer >= 0) {
      peer = static_cast<std::uint32_t>(captured.peer);
      collective.kind = CollectiveKind::send_receive;
    } else if (const auto kind = collective_kind(captured.function)) {
      collective.kind = *kind;
    }
    // NCCL counts what a rank gets from a reduce-scatter, and what it sends to each other in an all-to-all.
    const bool of_a_part = captured.function == "ReduceScatter" || captured.function == "AlltoAll";
    const auto parts = static_cast<std::int64_t>(of_a_part ? ranks : 1);
    if (captured.count <= static_cast<std::uint64_t>(kMostElementsMoved) && parts > 0)
      collective.elements = static_cast<std::int64_t>(captured.count) * parts;
    collective.algorithm = captured.algorithm;
    collective.protocol = captured.protocol;
    collective.channels = captured.channels;
    if (captured.in_bytes) {
      // What is only moved is as good as bytes. What is summed has the type of the kernel's name, if any.
      if (!is_sum(collective.kind)) collective.type = DataType::int8;
      if (collective.elements && collective.type)
        collective.elements = *collective.elements / static_cast<std::int64_t>(bytes_per_element(*collective.type));
      else
        collective.elements.reset();
    } else if (captured.type < kNcclTypes.size()) {
      collective.type = kNcclTypes[captured.type];
    }
    if (captured.communicator == 0 || ranks == 0 || ranks > static_cast<std::uint32_t>(kMaxWorld)) return;
    collective.group_size = peer ? 2 : ranks;
    collective.group_name = fmt::format("{:016x}", captured.communicator);
    out_.groups.push_back({op, captured.communicator, peer});
  }

  // Nodes of an executable graph are copies of those that were captured.
  [[nodiscard]] std::uint64_t original(std::uint64_t node) const {
    constexpr int kMostCopies = 16;  // of copies: a cycle is damage
    for (int i = 0; i < kMostCopies; ++i) {
      const auto copy = original_.find(node);
      if (copy == original_.end()) break;
      node = copy->second;
    }
    return node;
  }

  // Of two nodes that an edge joins, the one that started later waits for the other.
  void add_graph_waits() {
    for (const auto& [node, of] : process_.clones) original_.emplace(node, of);
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> neighbours;
    for (const auto& [node, other] : process_.edges) {
      neighbours[original(node)].push_back(original(other));
      neighbours[original(other)].push_back(original(node));
    }
    if (neighbours.empty()) return;
    std::map<std::int64_t, std::unordered_map<std::uint64_t, std::uint32_t>> launches;
    for (const Node& node : nodes_) launches[out_.rank.ops[node.op].correlation].emplace(original(node.node), node.op);
    for (const Node& node : nodes_) {
      TraceOp& op = out_.rank.ops[node.op];
      const auto& launched = launches[op.correlation];
      const auto found = neighbours.find(original(node.node));
      if (found == neighbours.end()) continue;
      for (const std::uint64_t neighbour : found->second) {
        const auto other = launched.find(neighbour);
        if (other != launched.end() && other->second < node.op) op.waits.push_back(other->second);
      }
      std::sort(op.waits.begin(), op.waits.end());
      op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
    }
  }

  const CapturedProcess& process_;
  std::int64_t device_;
  CapturedRank out_;
  std::map<Key, std::uint32_t> operations_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::uint64_t> original_;
};

}  // namespace

CapturedRank captured_rank(const CapturedProcess& process, std::int64_t device) {
  return RankJoiner(process, device).join();
}

}  // namespace weft
