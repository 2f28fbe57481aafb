// Networks of switches: fat trees, rails, dragonflies, and the network between the nodes of a cluster.
#include <algorithm>

#include "network/dragonfly_routing.h"
#include "network/network_builder.h"

namespace weft {

std::uint32_t gpus_of_branch(const NetworkSpec& spec) {
  if (spec.topology != TopologyKind::fat_tree || spec.cluster) return 0;
  return spec.tree.levels == 2 ? spec.tree.leaf_down() : spec.tree.leaf_down() * (spec.tree.radix / 2);
}

// Two levels: each leaf switch has a link to each spine. Three: pods of leaves and middle switches, and roots of which
// each has a link into each pod (Leiserson's fat tree as Al-Fares et al., SIGCOMM 2008, build it from equal switches).
void NetworkBuilder::add_tree(TreeParts parts) {
  const TreeSpec& spec = parts.spec;
  const std::uint32_t over = spec.oversubscription;
  if (spec.radix % (over + 1) != 0) {
    refuse(parts.key + "/radix", "expected a multiple of oversubscription + 1 = " + std::to_string(over + 1) +
                                     ", got " + std::to_string(spec.radix));
  }
  if (spec.levels == 3 && spec.radix % 2 != 0) {
    refuse(parts.key + "/radix", "expected an even number, got " + std::to_string(spec.radix));
  }
  TreeLayout tree = parts.layout;
  tree.levels = spec.levels;
  tree.leaf_down = spec.leaf_down();
  tree.leaf_up = spec.radix - tree.leaf_down;
  tree.pod_leaves = spec.radix / 2;
  tree.pod_up = spec.radix - tree.pod_leaves;
  const auto places = static_cast<std::uint32_t>(parts.terminals.size());
  tree.leaves = (places + tree.leaf_down - 1) / tree.leaf_down;
  const std::uint32_t leaves = (std::max(places, parts.all) + tree.leaf_down - 1) / tree.leaf_down;
  const std::uint32_t most = spec.levels == 2 ? spec.radix : spec.radix * tree.pod_leaves;
  if (leaves > most) {
    refuse(parts.key, "expected at most " + std::to_string(most) + " leaf switches of " +
                          std::to_string(tree.leaf_down) + " ports down, got " + std::to_string(leaves));
  }
  const std::uint32_t pods = spec.levels == 3 ? (tree.leaves + tree.pod_leaves - 1) / tree.pod_leaves : 0;
  const std::uint32_t ups = leaves > 1 ? tree.leaf_up : 0;
  const bool pods_join = spec.levels == 3 && leaves > tree.pod_leaves;
  const std::uint32_t roots = spec.levels == 2 ? ups : (pods_join ? ups * tree.pod_up : 0);
  tree.first_leaf = add_routers(tree.leaves, 1);
  tree.first_middle = add_routers(pods * ups, 2);
  tree.first_root = add_routers(roots, 3);
  for (std::uint32_t p = 0; p < places; ++p) {
    if (parts.terminals[p] == kNone) continue;
    topology_.connect(parts.terminals[p], tree.first_leaf + p / tree.leaf_down, parts.terminal_class,
                      parts.terminal_lanes);
  }
  for (std::uint32_t l = 0; l < tree.leaves; ++l) {
    const std::uint32_t above = spec.levels == 2 ? tree.first_root : tree.first_middle + l / tree.pod_leaves * ups;
    for (std::uint32_t u = 0; u < ups; ++u) {
      topology_.connect(tree.first_leaf + l, above + u, parts.link_class, parts.lanes);
    }
  }
  for (std::uint32_t m = 0; pods_join && m < pods * ups; ++m) {
    for (std::uint32_t u = 0; u < tree.pod_up; ++u) {
      topology_.connect(tree.first_middle + m, tree.first_root + m % ups * tree.pod_up + u, parts.link_class,
                        parts.lanes);
    }
  }
  route(std::make_unique<TreeRouting>(topology_, tree), tree.first_leaf, tree.leaves + pods * ups + roots);
}

// Every group has links to every other; groups are as many as the GPUs need, and their global links are spread evenly.
void NetworkBuilder::add_dragonfly(std::uint32_t first, std::uint32_t count) {
  if (spec_.cluster) refuse("topology", "expected one of a node's networks in a cluster, got \"dragonfly\"");
  const DragonflySpec& spec = spec_.dragonfly;
  const std::uint32_t a = spec.routers_per_group;
  const std::uint32_t per_group = a * spec.gpus_per_router;
  const std::uint32_t links = a * spec.global_links_per_router;
  expect_places(std::uint64_t{per_group} * (links + 1), count, "dragonfly");
  const std::uint32_t groups = (count + per_group - 1) / per_group;
  const std::uint32_t first_router = add_routers(groups * a);
  for (std::uint32_t g = 0; g < count; ++g) attach_gpu(first + g, first_router + g / spec.gpus_per_router);
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::uint32_t base = first_router + group * a;
    for (std::uint32_t i = 0; i < a; ++i) {
      for (std::uint32_t j = i + 1; j < a; ++j) topology_.connect(base + i, base + j, link_class_, spec_.lanes);
    }
  }
  // Link l of a group leads l % (groups - 1) + 1 groups on; from there it is the link of the complement.
  const std::uint32_t others = groups - 1;
  for (std::uint32_t group = 0; others > 0 && group < groups; ++group) {
    for (std::uint32_t l = 0; l < links / others * others; ++l) {
      const std::uint32_t offset = l % others + 1;
      const std::uint32_t peer = (group + offset) % groups;
      if (peer < group) continue;
      const std::uint32_t back = l - l % others + groups - offset - 1;
      topology_.connect(first_router + group * a + l / spec.global_links_per_router,
                        first_router + peer * a + back / spec.global_links_per_router, link_class_, spec_.lanes);
    }
  }
  topology_.index_ports();
  route(std::make_unique<DragonflyRouting>(topology_, spec, first_router, groups * a), first_router, groups * a);
}

void NetworkBuilder::add_cluster() {
  const ClusterSpec& cluster = *spec_.cluster;
  if (cluster.gpus_per_node % cluster.nics_per_node != 0) {
    refuse("cluster/nics_per_node",
           "expected a divisor of gpus_per_node, got " + std::to_string(cluster.nics_per_node));
  }
  const std::uint32_t per_nic = cluster.gpus_per_node / cluster.nics_per_node;
  const std::uint32_t nodes = (gpus_ + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const std::uint32_t nics = (gpus_ + per_nic - 1) / per_nic;
  const std::uint8_t nic_class = topology_.add_class(cluster.nic_link);
  const auto first_nic = static_cast<std::uint32_t>(topology_.nodes().size());
  for (std::uint32_t n = 0; n < nics; ++n) topology_.add_node(TopologyNodeKind::nic);
  for (std::uint32_t g = 0; g < gpus_; ++g) topology_.connect(g, first_nic + g / per_nic, nic_class, 1);
  route(std::make_unique<NicRouting>(first_nic, per_nic, gpus_), first_nic, nics);

  TreeParts parts;
  parts.spec = cluster.tree;
  parts.terminal_class = parts.link_class = topology_.add_class(cluster.link);
  parts.key = "cluster/tree";
  parts.layout.gpus = gpus_;
  parts.layout.gpus_per_node = cluster.gpus_per_node;
  parts.layout.terminals_per_node = cluster.nics_per_node;
  if (cluster.tree.rails) {
    const std::uint32_t down = cluster.tree.leaf_down();
    if (down == 0) refuse("cluster/tree/radix", "expected ports down, got none");
    parts.layout.rail_places = (nodes + down - 1) / down * down;
    parts.terminals.assign(std::size_t{cluster.nics_per_node} * parts.layout.rail_places, kNone);
  } else {
    parts.terminals.assign(nics, kNone);
  }
  for (std::uint32_t n = 0; n < nics; ++n) parts.terminals[parts.layout.place(n * per_nic)] = first_nic + n;
  add_tree(std::move(parts));
}

}  // namespace weft
