#include "cli/sampled/node_symmetry.h"

#include <algorithm>

#include "network/group_rings.h"
#include "network/network.h"

namespace weft {

namespace {

// So many GPUs that each talk to several of another node meet as all do; fewer are too fast (docs/validation.md).
constexpr std::size_t kEnoughPairs = 8;

// So many GPUs of a tree meet by chance as all do; fewer are in step, which holds them up (docs/validation.md).
constexpr std::uint32_t kEnoughOfTree = 64;

std::vector<RankSymmetry> ways_of_direct_links(const NetworkSpec& network, std::uint32_t gpus) {
  std::vector<RankSymmetry> ways;
  const RankSymmetry by_number{.ranks = gpus, .per_node = gpus};
  if (network.topology == TopologyKind::fully_connected) ways.push_back(by_number);
  if (const auto rings = rings_of_group(network, gpus, GpuGroup::first(gpus))) {
    ways.push_back(by_number);
    ways.back().rings = rings;
  }
  return ways;
}

}  // namespace

bool links_come_back(const NetworkSpec& network) {
  const bool direct = network.topology == TopologyKind::fully_connected || has_router_for_each_gpu(network.topology);
  return direct && !network.cluster;
}

std::string why_places_differ(const NetworkSpec& network, std::uint32_t gpus) {
  if (!network.faults.empty()) return "links are faulty";
  if (gpus_of_branch(network) > 0) {
    const bool some = !symmetries(network, gpus).empty();
    return some ? "" : "they are too few for a tree of switches, or do not fill its branches equally";
  }
  if (links_come_back(network)) {
    return ways_of_direct_links(network, gpus).empty() ? "no ring goes by links alone" : "";
  }
  if (network.topology != TopologyKind::switched || network.tree.radix != 0)
    return network.cluster ? "the network of a node is not one level of switches"
                           : "the network is neither one level of switches nor links that all GPUs have alike";
  if (!network.cluster) return "";
  const std::uint32_t per_node = network.cluster->gpus_per_node;
  if (gpus % per_node != 0 || gpus == per_node) return "they are not some whole nodes";
  if (network.cluster->tree.levels > 2) return "there are more than two levels of switches between nodes";
  return "";
}

std::vector<std::vector<RankSymmetry>> symmetries(const NetworkSpec& network, std::uint32_t gpus) {
  if (const std::uint32_t branch = gpus_of_branch(network); branch > 0) {
    std::uint32_t standing = branch;
    while (standing < gpus && (standing < kEnoughOfTree || gpus % standing != 0)) standing += branch;
    if (standing >= gpus) return {};
    return {{{.ranks = gpus, .per_node = branch, .standing = standing}}};
  }
  if (links_come_back(network)) return {ways_of_direct_links(network, gpus)};
  if (!network.cluster) return {{{.ranks = gpus, .per_node = gpus}}};
  const std::uint32_t per_node = network.cluster->gpus_per_node;
  const std::uint32_t nodes = gpus / per_node;
  const RankSymmetry by{.ranks = gpus, .per_node = per_node};
  std::vector<std::vector<RankSymmetry>> found;
  const auto add = [&](std::uint32_t standing, bool alternating) {
    found.back().push_back(by);
    found.back().back().standing = standing;
    found.back().back().alternating = alternating;
  };
  const auto add_trees = [&](std::uint32_t standing, bool of_places) {
    add(standing, false);
    found.back().back().two_trees = true;
    found.back().back().trees_of_places = of_places;
  };
  if (network.cluster->nics_per_node == per_node) {
    found.emplace_back();
    add(1, false);
    if (nodes % 2 == 0) add(1, true);
    if (nodes % 2 == 0) {
      for (const bool of_places : {true, false}) add_trees(1, of_places);
    }
  }
  found.emplace_back();
  add(per_node, false);
  if (nodes % 2 == 0) add_trees(per_node, false);
  if (nodes % 2 == 0 && nodes > 2) {
    found.emplace_back();
    add(2 * per_node, false);
  }
  return found;
}

std::string why_links_differ(const NetworkSpec& network, const FoldedRanks& folded) {
  return links_come_back(network) && folded.receivers != folded.senders ? "links have data one way only" : "";
}

bool nodes_share_leaf(const NetworkSpec& network, std::uint32_t gpus) {
  const ClusterSpec& cluster = *network.cluster;
  const std::uint32_t nodes = gpus / cluster.gpus_per_node;
  return (cluster.tree.rails ? nodes : nodes * cluster.nics_per_node) <= cluster.tree.leaf_down();
}

std::string why_nodes_differ(const NetworkSpec& network, const RankSymmetry& by, const FoldedRanks& folded) {
  const std::uint32_t gpus = by.ranks;
  if (by.rings && has_router_for_each_gpu(network.topology)) {
    const auto is_next = [&](std::uint32_t peer) {
      for (std::uint32_t c = 0; c < by.rings->cycles(); ++c) {
        if (by.rings->after(c, 0, 1) == peer || by.rings->after(c, 0, gpus - 1) == peer) return true;
      }
      return false;
    };
    if (!std::ranges::all_of(folded.receivers, is_next)) return "messages pass through routers of other GPUs";
  }
  // Each rank has one or two links to a neighbour; in all orders together a link is in as many.
  if (by.rings && network.topology == TopologyKind::hybrid_cube_mesh &&
      folded.kernels.front().blocks() % by.rings->cycles() != 0)
    return "some links go unused";
  if (folded.farthest == 0) return "";
  if (!network.cluster) return folded.many_pairs ? "packets of many GPUs meet at the roots of the tree" : "";
  const ClusterSpec& cluster = *network.cluster;
  const bool one_leaf = nodes_share_leaf(network, gpus);
  if (folded.changes_place && cluster.tree.rails) {
    const std::uint32_t nodes = gpus / cluster.gpus_per_node;
    if (!one_leaf || 2 * nodes > cluster.tree.radix - cluster.tree.leaf_down())
      return "rails meet in spine switches that many nodes share";
    if (folded.many_pairs && folded.kernels.size() < kEnoughPairs) return "packets of many GPUs meet before a NIC";
    return "";
  }
  if (one_leaf || (cluster.tree.rails && folded.farthest <= 2)) return "";
  return "some nodes reach each other by spine switches, others do not";
}

}  // namespace weft
