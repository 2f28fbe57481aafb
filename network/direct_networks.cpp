// Networks of one level, and those in which each GPU has a router of its own.
#include <algorithm>
#include <map>

#include "network/grid_routing.h"
#include "network/network_builder.h"
#include "network/table_routing.h"
#include "sim/error.h"

namespace weft {

namespace {
// Lanes of bundle `index` when `lanes` are spread over `bundles` as evenly as they go, the first ones taking the rest.
std::uint32_t share(std::uint32_t lanes, std::uint32_t bundles, std::uint32_t index) {
  return lanes / bundles + (index < lanes % bundles ? 1 : 0);
}

// At the router of a GPU that stands for all: what it sends to another one leaves as in the whole network, where that
// one is a link away, and what comes back by that link is for it.
class StandInRouting final : public Routing {
 public:
  // `router`: its number in the whole network. Its first port is the GPU's, there and here.
  StandInRouting(std::unique_ptr<Network> whole, std::uint32_t router) : whole_(std::move(whole)), router_(router) {}
  [[nodiscard]] Hops next(std::uint32_t /*node*/, std::uint32_t in_port, const Packet& packet) const override {
    return in_port == 0 ? whole_->routing(router_).next(router_, in_port, packet) : one_port(0);
  }
  [[nodiscard]] std::uint32_t vc_classes() const override { return whole_->routing(router_).vc_classes(); }

 private:
  std::unique_ptr<Network> whole_;
  std::uint32_t router_;
};
}  // namespace

// Planes that each GPU reaches by a port: a switch, or leaf switches that all have a link to each spine of the plane.
void NetworkBuilder::add_switched(std::uint32_t first, std::uint32_t count) {
  const TreeSpec& tree = spec_.tree;
  const std::uint32_t over = tree.oversubscription;
  std::uint32_t leaf_gpus = count;
  std::uint32_t spines = 0;
  if (tree.radix > 0) {
    if (tree.levels != 2) refuse("tree/levels", "expected 2 of switches, got " + std::to_string(tree.levels));
    if (tree.radix % (over + 1) != 0) {
      refuse("tree/radix", "expected a multiple of oversubscription + 1 = " + std::to_string(over + 1) + ", got " +
                               std::to_string(tree.radix));
    }
    spines = tree.radix / (over + 1);
    leaf_gpus = tree.radix - spines;
    expect_places(std::uint64_t{leaf_gpus} * tree.radix, count, "tree");
    if (count <= leaf_gpus) spines = 0;
  }
  const std::uint32_t leaves = (count + leaf_gpus - 1) / leaf_gpus;
  for (std::uint32_t plane = 0; plane < spec_.switches; ++plane) {
    const std::uint32_t lanes = share(spec_.links_per_gpu, spec_.switches, plane);
    const auto first_leaf = static_cast<std::uint32_t>(topology_.nodes().size());
    for (std::uint32_t l = 0; l < leaves; ++l) topology_.add_node(TopologyNodeKind::hub, spines > 0 ? 1 : 0);
    for (std::uint32_t s = 0; s < spines; ++s) topology_.add_node(TopologyNodeKind::hub, 2);
    for (std::uint32_t g = 0; g < count; ++g) {
      topology_.connect(first + g, first_leaf + g / leaf_gpus, link_class_, lanes);
    }
    for (std::uint32_t l = 0; l < leaves; ++l) {
      for (std::uint32_t s = 0; s < spines; ++s) {
        topology_.connect(first_leaf + l, first_leaf + leaves + s, link_class_, lanes);
      }
    }
  }
}

// One that stands for all has the links of one, and each comes back to it.
void NetworkBuilder::add_fully_connected(std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t kMost = 1024;  // half a million cables
  const std::uint32_t all = spec_.cluster ? count : all_;
  if (all < 2) return;
  if (all > kMost) {
    refuse("topology",
           "expected at most " + std::to_string(kMost) + " GPUs that are fully connected, got " + std::to_string(all));
  }
  const std::uint32_t lanes = spec_.links_per_gpu / (all - 1);
  if (lanes == 0) {
    refuse("links_per_gpu", "expected at least " + std::to_string(all - 1) + " (one to each other GPU), got " +
                                std::to_string(spec_.links_per_gpu));
  }
  if (count < all) {
    WEFT_CHECK(count == 1, "one GPU, or all");
    for (std::uint32_t peer = 1; peer < all; ++peer) topology_.loop(first, link_class_, lanes);
    return;
  }
  for (std::uint32_t a = first; a < first + count; ++a) {
    for (std::uint32_t b = a + 1; b < first + count; ++b) topology_.connect(a, b, link_class_, lanes);
  }
}

// Where each GPU has a router: that of one which stands for all, with the links that it has among all.
void NetworkBuilder::add_stand_in(std::uint32_t gpu) {
  std::unique_ptr<Network> whole = make_network(spec_, all_, origin_);
  const Topology& topology = whole->topology;
  const std::uint32_t there = topology.neighbour(0, 0);
  WEFT_CHECK(topology.neighbour(there, 0) == 0, "a router's first port is its GPU's");
  const std::uint32_t router = add_routers(1);
  attach_gpu(gpu, router);
  for (std::uint32_t port = 1; port < topology.nodes()[there].ports; ++port) {
    topology_.loop(router, link_class_, topology.cables()[topology.out(there, port).cable].lanes);
  }
  route(std::make_unique<StandInRouting>(std::move(whole), there), router, 1);
}

void NetworkBuilder::add_grid(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> dimensions = spec_.dimensions;
  if (spec_.topology == TopologyKind::ring) dimensions = {std::max(2U, count)};
  if (spec_.topology == TopologyKind::hypercube) {
    dimensions.assign(1, 2);
    while ((std::uint64_t{1} << dimensions.size()) < count) dimensions.push_back(2);
  }
  const bool wraps = spec_.topology == TopologyKind::ring || spec_.topology == TopologyKind::torus;
  std::uint64_t routers = 1;
  for (const std::uint32_t k : dimensions) routers = std::min<std::uint64_t>(routers * k, 1 << 20);
  expect_places(routers, count, "dimensions");
  if (routers > 65535) refuse("dimensions", "expected at most 65535 routers, got more");
  const auto all = static_cast<std::uint32_t>(routers);
  const std::uint32_t first_router = add_routers(all);
  for (std::uint32_t g = 0; g < count; ++g) attach_gpu(first + g, first_router + g);
  std::uint32_t stride = 1;
  for (const std::uint32_t k : dimensions) {
    for (std::uint32_t r = 0; r < all; ++r) {
      const std::uint32_t at = r / stride % k;
      if (at + 1 < k) topology_.connect(first_router + r, first_router + r + stride, link_class_, spec_.lanes);
      if (at + 1 == k && wraps && k > 2) {
        topology_.connect(first_router + r, first_router + r - at * stride, link_class_, spec_.lanes);
      }
    }
    stride *= k;
  }
  topology_.index_ports();
  Grid grid(topology_, dimensions, wraps, first_router, first);
  if (spec_.routing.choice != PathChoice::adaptive) {
    route(std::make_unique<GridRouting>(std::move(grid)), first_router, all);
    return;
  }
  const std::uint64_t classes = AdaptiveGridRouting::classes(std::min<std::size_t>(dimensions.size(), 8), wraps);
  if (classes > AdaptiveGridRouting::kMaxClasses) {
    refuse("routing/paths", "expected deterministic paths for so many dimensions (adaptive: at most " +
                                std::string(wraps ? "3" : "5") + "), got " + std::to_string(dimensions.size()));
  }
  route(std::make_unique<AdaptiveGridRouting>(std::move(grid)), first_router, all);
}

// DGX-1 with V100: six links a GPU, half of the pairs that have any joined by two. Source: the topology file of such a
// machine in github.com/NVIDIA/nccl issue 671 (GPUs 0 to 3 and their partners); GPUs 4 to 7 are joined as 0 to 3 are.
void NetworkBuilder::add_hybrid_cube_mesh(std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t kGpus = 8;
  constexpr std::uint32_t kLinks[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                         {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                         {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  expect_places(kGpus, count, "topology");
  const std::uint32_t first_router = add_routers(kGpus);
  for (std::uint32_t g = 0; g < count; ++g) attach_gpu(first + g, first_router + g);
  for (const auto& [a, b, lanes] : kLinks) {
    topology_.connect(first_router + a, first_router + b, link_class_, lanes * spec_.lanes);
  }
  topology_.index_ports();
  route(std::make_unique<TableRouting>(topology_, spec_.routing.graph, first_router, kGpus, origin_), first_router,
        kGpus);
}

void NetworkBuilder::add_graph(std::uint32_t first, std::uint32_t count) {
  const GraphSpec& graph = spec_.graph;
  std::map<std::string, std::uint32_t> nodes;
  std::uint32_t gpus = 0;
  std::uint32_t routers = 0;
  for (const GraphSpec::Node& node : graph.nodes) {
    if (node.gpu) {
      nodes[node.name] = gpus < count ? first + gpus : kNone;  // GPUs that do not take part are left out
      ++gpus;
      continue;
    }
    const auto index = static_cast<std::uint32_t>(topology_.nodes().size());
    nodes[node.name] = topology_.add_node(TopologyNodeKind::router, 0, spec_.cluster ? "" : node.name);
    ++routers;
    if (routers > 65535) refuse("graph/nodes", "expected at most 65535 routers, got " + std::to_string(index));
  }
  expect_places(gpus, count, "graph/nodes");
  const auto first_router = static_cast<std::uint32_t>(topology_.nodes().size()) - routers;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint8_t> classes;
  std::vector<std::uint32_t> gpu_links(count, 0);
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    const GraphSpec::Link& link = graph.links[l];
    const std::string key = "graph/links/" + std::to_string(l);
    for (const auto& [end, name] : {std::pair("from", &link.from), std::pair("to", &link.to)}) {
      if (!nodes.contains(*name)) refuse(key + "/" + end, "expected the name of a node, got \"" + *name + "\"");
    }
    const std::uint32_t a = nodes.at(link.from);
    const std::uint32_t b = nodes.at(link.to);
    if (a == b && a != kNone)
      refuse(key, "expected a link between two nodes, got one from \"" + link.from + "\" to itself");
    if (a == kNone || b == kNone) continue;
    const std::uint32_t ends_at_gpus = (a < first_router ? 1U : 0U) + (b < first_router ? 1U : 0U);
    if (ends_at_gpus == 2) refuse(key, "expected a link with a router at one end at least, got one between GPUs");
    if (ends_at_gpus == 1) ++gpu_links[std::min(a, b) - first];
    LinkSpec spec = spec_.link;
    spec.bandwidth = link.bandwidth.value_or(spec.bandwidth);
    spec.latency = link.latency.value_or(spec.latency);
    const auto [at, fresh] = classes.try_emplace({spec.bandwidth.count(), spec.latency.count()}, link_class_);
    if (fresh && (link.bandwidth || link.latency)) at->second = topology_.add_class(spec);
    topology_.connect(a, b, at->second, link.lanes);
  }
  for (std::uint32_t g = 0; g < count; ++g) {
    if (gpu_links[g] != 1) {
      refuse("graph/links", "expected one link of each GPU, with as many lanes as it has, got " +
                                std::to_string(gpu_links[g]) + " of GPU " + std::to_string(g));
    }
  }
  topology_.index_ports();
  route(std::make_unique<TableRouting>(topology_, spec_.routing.graph, first_router, routers,
                                       Origin{origin_.file, origin_.path + "/graph"}),
        first_router, routers);
}

}  // namespace weft
