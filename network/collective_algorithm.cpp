#include "network/collective_algorithm.h"

#include <fmt/format.h>

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
  const std::int64_t element = request.element_bytes;
  if (element != 1 && element != 2 && element != 4 && element != 8) {
    throw InputError(fmt::format("{}: expected elements of 1, 2, 4 or 8 B, got {} B", name, element));
  }
  if (request.bytes < 0 || request.bytes % element != 0) {
    throw InputError(fmt::format("{}: expected whole elements of {} B, got {} B", name, element, request.bytes));
  }
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

bool supports(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
             kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::broadcast ||
             kind == CollectiveKind::reduce;
    default:
      return false;
  }
}

CollectiveAlgorithm usual_algorithm(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::barrier:
      return CollectiveAlgorithm::halving_doubling;
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::send_receive:
      return CollectiveAlgorithm::direct;
    default:
      return CollectiveAlgorithm::ring;
  }
}

std::unique_ptr<CollectiveSchedule> make_schedule(CollectiveAlgorithm algorithm, const ScheduleRequest& request) {
  if (!supports(algorithm, request.kind)) {
    throw InputError(
        fmt::format("{}: expected an algorithm that can, got {}", to_string(request.kind), to_string(algorithm)));
  }
  check(request);
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return make_ring(request);
    default:
      throw InternalError("an algorithm without a generator");
  }
}

}  // namespace weft
