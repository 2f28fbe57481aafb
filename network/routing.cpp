#include "network/routing.h"

#include "sim/error.h"

namespace weft {

std::uint32_t TreeLayout::place(std::uint32_t gpu) const {
  if (terminals_per_node == 0) return gpu;
  gpu %= gpus;
  const std::uint32_t in_node = gpu % gpus_per_node * terminals_per_node / gpus_per_node;
  const std::uint32_t its_node = gpu / gpus_per_node;
  return rail_places > 0 ? in_node * rail_places + its_node : its_node * terminals_per_node + in_node;
}

// A packet for a GPU that another one stands for goes up as far as the roots, and then down to that one.
Hops TreeRouting::next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const {
  const TreeLayout& tree = layout_;
  std::uint32_t place = tree.place(target_of(packet));
  if (tree.terminals_per_node == 0 && place >= tree.gpus) {
    const bool at_leaf = node < tree.first_leaf + tree.leaves;
    const bool at_root = !at_leaf && (tree.levels == 2 || node >= tree.first_root);
    const std::uint32_t ports_up = at_leaf ? tree.leaf_up : tree.pod_up;
    if (at_root || in_port + ports_up >= topology_->nodes()[node].ports) place %= tree.gpus;
  }
  const std::uint32_t leaf = place / tree.leaf_down;
  const auto up = [&](std::uint32_t ports_up, std::uint32_t preferred) {
    Hops hops;
    hops.first = static_cast<std::uint16_t>(topology_->nodes()[node].ports - ports_up);
    hops.count = static_cast<std::uint16_t>(ports_up);
    hops.preferred = static_cast<std::uint16_t>(preferred % ports_up);
    return hops;
  };
  if (node < tree.first_leaf + tree.leaves) {
    if (node - tree.first_leaf == leaf) return one_port(place % tree.leaf_down);
    return up(tree.leaf_up, place);
  }
  if (tree.levels == 2) return one_port(leaf);
  const std::uint32_t pod = leaf / tree.pod_leaves;
  if (node >= tree.first_root) return one_port(pod);
  if ((node - tree.first_middle) / tree.leaf_up == pod) return one_port(leaf % tree.pod_leaves);
  return up(tree.pod_up, place / tree.leaf_up);
}

Hops NicRouting::next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const {
  const std::uint32_t first = (node - first_nic_) * gpus_per_nic_;
  const std::uint32_t port_out = std::min(gpus_per_nic_, gpus_ - first);
  return one_port(in_port < port_out ? port_out : target_of(packet) % gpus_ - first);
}

}  // namespace weft
