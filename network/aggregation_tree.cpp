#include "network/aggregation_tree.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

struct Paths {
  std::vector<std::uint32_t> hops;     // by node; kFar: not reached
  std::vector<std::uint16_t> towards;  // by node: its port that leads back
};

bool is_router(const TopologyNode& node) {
  return node.kind == TopologyNodeKind::router || node.kind == TopologyNodeKind::nic;
}

// From a node to all that routers lead to.
Paths paths_from(const Topology& topology, std::uint32_t start) {
  Paths paths{std::vector<std::uint32_t>(topology.nodes().size(), kFar),
              std::vector<std::uint16_t>(topology.nodes().size(), 0)};
  std::vector<std::uint32_t> queue{start};
  paths.hops[start] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t at = queue[i];
    if (at != start && !is_router(topology.nodes()[at])) continue;
    for (std::uint32_t p = 0; p < topology.nodes()[at].ports; ++p) {
      const LinkId out = topology.out(at, p);
      const std::uint32_t to = topology.to(out);
      const LinkId back{out.cable, 1 - out.direction};
      if (paths.hops[to] != kFar || topology.out_of_order(out) || topology.out_of_order(back)) continue;
      const Cable& cable = topology.cables()[out.cable];
      paths.hops[to] = paths.hops[at] + 1;
      paths.towards[to] = cable.a == at ? cable.port_b : cable.port_a;
      queue.push_back(to);
    }
  }
  return paths;
}

std::uint32_t find_root(const Topology& topology, const AggregationGroup& group, std::uint32_t number) {
  const std::size_t nodes = topology.nodes().size();
  std::vector<std::uint32_t> farthest(nodes, 0);
  std::vector<std::uint64_t> sum(nodes, 0);
  for (const GpuId gpu : group.gpus) {
    const Paths paths = paths_from(topology, gpu.value);
    for (std::size_t n = 0; n < nodes; ++n) {
      farthest[n] = std::max(farthest[n], paths.hops[n]);
      sum[n] += paths.hops[n];
    }
  }
  std::vector<std::uint32_t> best;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    if (topology.nodes()[n].kind != TopologyNodeKind::router || farthest[n] == kFar) continue;
    const auto cost = [&](std::uint32_t node) { return std::pair(farthest[node], sum[node]); };
    if (!best.empty() && cost(n) < cost(best.front())) best.clear();
    if (best.empty() || cost(n) == cost(best.front())) best.push_back(n);
  }
  if (best.empty()) {
    throw InputError("", "/network", "in_network: expected a router that leads to all GPUs of a group, got none");
  }
  return best[number % best.size()];
}

}  // namespace

AggregationTree make_aggregation_tree(const Topology& topology, const AggregationGroup& group, std::uint32_t number) {
  const std::uint32_t root = find_root(topology, group, number);
  const Paths paths = paths_from(topology, root);
  std::map<std::uint32_t, TreePlace> routers;
  AggregationTree tree;
  for (const GpuId gpu : group.gpus) {
    tree.members.push_back({paths.towards[gpu.value], 0});
    std::uint32_t* place = &tree.members.back().place;  // of the contribution that goes up
    for (std::uint32_t at = gpu.value; at != root;) {
      const LinkId up = topology.out(at, paths.towards[at]);
      const Cable& cable = topology.cables()[up.cable];
      const std::uint16_t below = up.direction == 0 ? cable.port_b : cable.port_a;
      at = topology.to(up);
      const bool known = routers.contains(at);
      TreePlace& router = routers[at];
      const auto port = std::lower_bound(router.below.begin(), router.below.end(), below);
      if (port == router.below.end() || *port != below) router.below.insert(port, below);
      if (at != root) router.above = paths.towards[at];
      if (topology.nodes()[at].kind == TopologyNodeKind::router) {
        if (place != nullptr) *place = router.contributors++;
        place = known ? nullptr : &router.place;  // its sums have their place already
      }
    }
  }
  tree.routers.assign(routers.begin(), routers.end());
  return tree;
}

}  // namespace weft
