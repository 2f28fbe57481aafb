#include "workloads/replay_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace weft {
namespace {

std::uint32_t size_of(const CollectiveNode& collective) {
  return std::max(collective.group_size, static_cast<std::uint32_t>(collective.group_ranks.size()));
}

// The distance between the members of a group, when it is the same between all; else 0. Without ranks, neighbours.
std::uint32_t stride_of(const CollectiveNode& collective) {
  std::vector<std::uint32_t> ranks = collective.group_ranks;
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() < 2) return 1;
  const std::uint32_t stride = ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return 0;
  }
  return stride;
}

}  // namespace

ReplayGroups::ReplayGroups(const Graph& graph, std::uint32_t gpus)
    : source_(graph.name), gpus_(gpus), world_(graph.recorded_world) {
  if (world_ > 0) return;
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::collective) world_ = std::max(world_, size_of(node.collective));
  }
}

bool ReplayGroups::whole_world(const CollectiveNode& collective) const {
  const std::uint32_t size = size_of(collective);
  return size == 0 || size == world_;
}

void ReplayGroups::check(const CollectiveNode& collective, const std::string& path) const {
  const auto fail = [&](const std::string& message) { throw InputError(source_, path, message); };
  const std::uint32_t size = size_of(collective);
  for (const std::uint32_t rank : collective.group_ranks) {
    if (rank >= world_) fail(fmt::format("expected a group of ranks below {}, got rank {}", world_, rank));
  }
  if (size > world_) fail(fmt::format("expected a group of at most {} ranks, got {}", world_, size));
  if (!collective.group_ranks.empty() && collective.group_ranks.size() != size) {
    fail(fmt::format("expected {} group ranks, got {}", size, collective.group_ranks.size()));
  }
  if (whole_world(collective)) return;
  if (gpus_ != world_) {
    fail(
        fmt::format("expected a group of the whole recorded world of {} ranks, or a run on as many GPUs, got a group "
                    "of {} and {} GPUs",
                    world_, size, gpus_));
  }
  const std::uint32_t stride = stride_of(collective);
  if (stride == 0 || world_ % (size * stride) != 0) {
    fail(fmt::format("expected a group whose pattern divides {} ranks evenly, got {} ranks at distance {}", world_,
                     size, stride));
  }
}

std::vector<GpuId> ReplayGroups::group_of(GpuId gpu, const CollectiveNode& collective, const std::string& path) const {
  check(collective, path);
  std::vector<GpuId> group;
  if (whole_world(collective)) {
    for (std::uint32_t i = 0; i < gpus_; ++i) group.push_back(GpuId{i});
    return group;
  }
  const std::uint32_t size = size_of(collective);
  const std::uint32_t stride = stride_of(collective);
  const std::uint32_t block = size * stride;
  const std::uint32_t first = gpu.value / block * block + gpu.value % stride;
  for (std::uint32_t i = 0; i < size; ++i) group.push_back(GpuId{first + i * stride});
  return group;
}

}  // namespace weft
