#include "network/collective_algorithm.h"

#include <fmt/format.h>

#include <vector>

#include "network/schedule_generators.h"
#include "sim/error.h"

namespace weft {

namespace {

void check(const ScheduleRequest& request) {
  const char* name = to_string(request.kind);
  if (request.kind == CollectiveKind::send_receive ? request.ranks != 2 : request.ranks < 2) {
    throw InputError(fmt::format("{}: expected {} ranks, got {}", name,
                                 request.kind == CollectiveKind::send_receive ? "exactly 2" : "at least 2",
                                 request.ranks));
  }
  if (request.root >= request.ranks) {
    throw InputError(fmt::format("{}: expected a root below {}, got {}", name, request.ranks, request.root));
  }
  if (request.kind == CollectiveKind::shift && (request.distance == 0 || request.distance >= request.ranks)) {
    throw InputError(
        fmt::format("{}: expected a distance from 1 to {}, got {}", name, request.ranks - 1, request.distance));
  }
  if (request.first && *request.first >= request.ranks) {
    throw InputError(fmt::format("{}: expected a first rank below {}, got {}", name, request.ranks, *request.first));
  }
  const std::int64_t element = request.element_bytes;
  if (element != 1 && element != 2 && element != 4 && element != 8) {
    throw InputError(fmt::format("{}: expected elements of 1, 2, 4 or 8 B, got {} B", name, element));
  }
  if (request.bytes < 0 || request.bytes % element != 0) {
    throw InputError(fmt::format("{}: expected whole elements of {} B, got {} B", name, element, request.bytes));
  }
  if (request.ring_orders && request.ring_orders->ranks() != request.ranks) {
    throw InputError(
        fmt::format("{}: expected ring orders of {} ranks, got {}", name, request.ranks, request.ring_orders->ranks()));
  }
}

void check_nodes(const ScheduleRequest& request) {
  if (request.ranks_per_node > 0 && request.ranks % request.ranks_per_node == 0) return;
  throw InputError(fmt::format(
      "hierarchical: expected nodes of as many ranks each, {} in all, got {} (all_reduce.ranks_per_node gives others)",
      request.ranks,
      request.ranks_per_node > 0 ? fmt::format("{} a node", request.ranks_per_node) : "nodes that differ in them"));
}

}  // namespace

const char* to_string(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return "ring";
    case CollectiveAlgorithm::tree:
      return "tree";
    case CollectiveAlgorithm::double_binary_tree:
      return "double_binary_tree";
    case CollectiveAlgorithm::halving_doubling:
      return "halving_doubling";
    case CollectiveAlgorithm::direct:
      return "direct";
    case CollectiveAlgorithm::hierarchical:
      return "hierarchical";
  }
  throw InternalError("unknown algorithm");
}

bool is_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

bool supports(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  using Kind = CollectiveKind;
  const bool everywhere = kind == Kind::all_reduce || kind == Kind::all_gather || kind == Kind::reduce_scatter;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return everywhere || kind == Kind::broadcast || kind == Kind::reduce;
    case CollectiveAlgorithm::tree:
      return kind == Kind::all_reduce || kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::barrier;
    case CollectiveAlgorithm::halving_doubling:
      return everywhere || kind == Kind::barrier;
    case CollectiveAlgorithm::direct:
      return everywhere || kind == Kind::all_to_all || kind == Kind::gather || kind == Kind::scatter ||
             kind == Kind::send_receive || kind == Kind::shift;
    case CollectiveAlgorithm::double_binary_tree:
    case CollectiveAlgorithm::hierarchical:
      return kind == Kind::all_reduce;
  }
  return false;
}

std::optional<CollectiveAlgorithm> schedule_of(AllReduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllReduceAlgorithm::ring:
      return CollectiveAlgorithm::ring;
    case AllReduceAlgorithm::tree:
      return CollectiveAlgorithm::tree;
    case AllReduceAlgorithm::double_binary_tree:
      return CollectiveAlgorithm::double_binary_tree;
    case AllReduceAlgorithm::halving_doubling:
      return CollectiveAlgorithm::halving_doubling;
    case AllReduceAlgorithm::direct:
      return CollectiveAlgorithm::direct;
    case AllReduceAlgorithm::hierarchical:
      return CollectiveAlgorithm::hierarchical;
    case AllReduceAlgorithm::automatic:
    case AllReduceAlgorithm::in_switch:
    case AllReduceAlgorithm::in_network:
      return std::nullopt;
  }
  throw InternalError("unknown algorithm");
}

CollectiveAlgorithm schedule_for(AllReduceAlgorithm algorithm, CollectiveKind kind) {
  const CollectiveAlgorithm wanted = schedule_of(algorithm).value_or(usual_algorithm(kind));
  return supports(wanted, kind) ? wanted : usual_algorithm(kind);
}

bool does(AllReduceAlgorithm algorithm, CollectiveKind kind) {
  const std::optional<CollectiveAlgorithm> schedule = schedule_of(algorithm);
  if (schedule) return supports(*schedule, kind);
  if (algorithm == AllReduceAlgorithm::automatic) return true;
  if (algorithm == AllReduceAlgorithm::in_network) return kind == CollectiveKind::all_reduce;
  using Kind = CollectiveKind;  // in_switch
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::all_gather ||
         kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::barrier;
}

bool is_staged_in_switch(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::barrier;
}

CollectiveAlgorithm usual_algorithm(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::barrier:
      return CollectiveAlgorithm::halving_doubling;
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::send_receive:
    case CollectiveKind::shift:
      return CollectiveAlgorithm::direct;
    default:
      return CollectiveAlgorithm::ring;
  }
}

std::unique_ptr<CollectiveSchedule> make_schedule(CollectiveAlgorithm algorithm, const ScheduleRequest& request) {
  if (!supports(algorithm, request.kind)) {
    std::vector<const char*> names;
    for (const CollectiveAlgorithm other : kCollectiveAlgorithms) {
      if (supports(other, request.kind)) names.push_back(to_string(other));
    }
    throw InputError(fmt::format("{}: expected {}, got {}", to_string(request.kind), fmt::join(names, " or "),
                                 to_string(algorithm)));
  }
  check(request);
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return make_ring(request);
    case CollectiveAlgorithm::tree:
      return make_tree(request);
    case CollectiveAlgorithm::double_binary_tree:
      return make_double_binary_tree(request);
    case CollectiveAlgorithm::halving_doubling:
      return make_halving_doubling(request);
    case CollectiveAlgorithm::direct:
      if (is_exchange(request.kind)) return make_exchange(request);
      return has_block_a_peer(request.kind, request.ranks, request.channels) ? make_all_pairs(request)
                                                                             : make_direct(request);
    case CollectiveAlgorithm::hierarchical:
      check_nodes(request);
      return make_hierarchical(request);
  }
  throw InternalError("unknown algorithm");
}

}  // namespace weft
