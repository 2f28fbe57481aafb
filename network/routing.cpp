#include "network/routing.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint16_t kNoPort = 0xffff;

Hops one(std::uint32_t port, std::uint8_t vc_class = 0) {
  return {
      .ports = nullptr, .first = static_cast<std::uint16_t>(port), .count = 1, .preferred = 0, .vc_class = vc_class};
}
}  // namespace

GridRouting::GridRouting(const Topology& topology, std::vector<std::uint32_t> dimensions, bool wraps,
                         std::uint32_t first_router, std::uint32_t first_gpu)
    : dimensions_(std::move(dimensions)), wraps_(wraps), first_router_(first_router), first_gpu_(first_gpu) {
  const std::size_t n = dimensions_.size();
  std::uint32_t routers = 1;
  for (const std::uint32_t k : dimensions_) routers *= k;
  coordinates_.resize(routers * n);
  ports_.assign(routers * (1 + 2 * n), kNoPort);
  for (std::uint32_t r = 0; r < routers; ++r) {
    std::uint32_t rest = r;
    for (std::size_t d = 0; d < n; ++d) {
      coordinates_[r * n + d] = static_cast<std::uint16_t>(rest % dimensions_[d]);
      rest /= dimensions_[d];
    }
  }
  for (std::uint32_t r = 0; r < routers; ++r) {
    std::uint16_t* ports = &ports_[r * (1 + 2 * n)];
    for (std::uint32_t p = 0; p < topology.nodes()[first_router + r].ports; ++p) {
      const std::uint32_t neighbour = topology.neighbour(first_router + r, p);
      const auto port = static_cast<std::uint16_t>(p);
      if (neighbour < first_router || neighbour >= first_router + routers) {
        ports[0] = port;
        continue;
      }
      for (std::size_t d = 0; d < n; ++d) {
        const std::uint32_t here = coordinates_[r * n + d];
        const std::uint32_t there = coordinates_[(neighbour - first_router) * n + d];
        if (here == there) continue;
        if (there == here + 1 || (there == 0 && here + 1 == dimensions_[d])) ports[2 + 2 * d] = port;
        if (there + 1 == here || (here == 0 && there + 1 == dimensions_[d])) ports[1 + 2 * d] = port;
      }
    }
  }
}

Hops GridRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const std::size_t n = dimensions_.size();
  const std::uint32_t router = node - first_router_;
  const std::uint32_t target = target_of(packet) - first_gpu_;
  const std::uint16_t* ports = &ports_[router * (1 + 2 * n)];
  if (router == target) return one(ports[0]);
  const std::uint16_t* here = &coordinates_[router * n];
  const std::uint16_t* there = &coordinates_[target * n];
  std::size_t d = 0;
  while (here[d] == there[d]) ++d;
  const std::uint32_t c = here[d];
  const std::uint32_t t = there[d];
  const std::uint32_t k = dimensions_[d];
  const auto by_address = static_cast<std::uint8_t>((packet.line ^ packet.source) & 1U);
  if (!wraps_) return one(ports[t > c ? 2 + 2 * d : 1 + 2 * d]);
  if (k == 2) return one(ports[t > c ? 2 + 2 * d : 1 + 2 * d], by_address);
  const std::uint32_t upward = t > c ? t - c : t + k - c;
  // Both ways are equally far: routers take turns, so that both carry the same.
  const bool up = 2 * upward == k ? ((router + c) & 1U) == 0 : 2 * upward < k;
  const std::uint32_t s = coordinates_[(origin_of(packet) - first_gpu_) * n + d];
  const bool will_cross = up ? t < c : t > c;
  const bool has_crossed = up ? c < s : c > s;
  std::uint8_t vc_class = by_address;
  if (will_cross) vc_class = 0;
  if (!will_cross && has_crossed) vc_class = 1;
  return one(ports[up ? 2 + 2 * d : 1 + 2 * d], vc_class);
}

std::uint32_t TreeLayout::place(std::uint32_t gpu) const {
  if (terminals_per_node == 0) return gpu;
  const std::uint32_t in_node = gpu % gpus_per_node * terminals_per_node / gpus_per_node;
  const std::uint32_t its_node = gpu / gpus_per_node;
  return rail_places > 0 ? in_node * rail_places + its_node : its_node * terminals_per_node + in_node;
}

Hops TreeRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const TreeLayout& tree = layout_;
  const std::uint32_t place = tree.place(target_of(packet));
  const std::uint32_t leaf = place / tree.leaf_down;
  const auto up = [&](std::uint32_t ports_up, std::uint32_t preferred) {
    Hops hops;
    hops.first = static_cast<std::uint16_t>(topology_->nodes()[node].ports - ports_up);
    hops.count = static_cast<std::uint16_t>(ports_up);
    hops.preferred = static_cast<std::uint16_t>(preferred % ports_up);
    return hops;
  };
  if (node < tree.first_leaf + tree.leaves) {
    if (node - tree.first_leaf == leaf) return one(place % tree.leaf_down);
    return up(tree.leaf_up, place);
  }
  if (tree.levels == 2) return one(leaf);
  const std::uint32_t pod = leaf / tree.pod_leaves;
  if (node >= tree.first_root) return one(pod);
  if ((node - tree.first_middle) / tree.leaf_up == pod) return one(leaf % tree.pod_leaves);
  return up(tree.pod_up, place / tree.leaf_up);
}

Hops NicRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const std::uint32_t target = target_of(packet);
  const std::uint32_t first = (node - first_nic_) * gpus_per_nic_;
  if (target >= first && target < first + gpus_per_nic_) return one(target - first);
  return one(std::min(gpus_per_nic_, gpus_ - first));
}

std::uint16_t DragonflyRouting::local_port(std::uint32_t router, std::uint32_t peer) const {
  const std::uint32_t first_gpu = router * layout_.gpus_per_router;
  const std::uint32_t gpus = layout_.gpus > first_gpu ? std::min(layout_.gpus_per_router, layout_.gpus - first_gpu) : 0;
  const std::uint32_t here = router % layout_.routers_per_group;
  return static_cast<std::uint16_t>(gpus + (peer < here ? peer : peer - 1));
}

Hops DragonflyRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const DragonflyLayout& layout = layout_;
  const std::uint32_t router = node - layout.first_router;
  const std::uint32_t target = target_of(packet);
  const std::uint32_t last = target / layout.gpus_per_router;
  if (router == last) return one(target % layout.gpus_per_router);
  const std::uint32_t group = router / layout.routers_per_group;
  const std::uint32_t target_group = last / layout.routers_per_group;
  if (group == target_group) {
    const std::uint32_t from = origin_of(packet) / layout.gpus_per_router / layout.routers_per_group;
    return one(local_port(router, last % layout.routers_per_group), from != group ? 1 : 0);
  }
  // Which of the links to that group: by target, the same one all the way through this group.
  const std::uint32_t rounds = layout.routers_per_group * layout.global_links / (layout.groups - 1);
  const std::uint32_t offset = (target_group + layout.groups - group) % layout.groups;
  const std::uint32_t link = target % rounds * (layout.groups - 1) + offset - 1;
  const std::uint32_t exit = link / layout.global_links;
  if (exit == router % layout.routers_per_group) {
    return one(layout.global_ports[router * layout.global_links + link % layout.global_links]);
  }
  return one(local_port(router, exit));
}

}  // namespace weft
