#include "network/group_rings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "network/network.h"

namespace weft {

namespace {

using Cycle = std::vector<std::uint32_t>;

// Whose GPUs a group is of.
class System {
 public:
  System(const NetworkSpec& network, std::uint32_t gpus)
      : network_(network),
        gpus_(gpus),
        per_node_(network.cluster ? std::min(gpus, network.cluster->gpus_per_node) : gpus) {}
  [[nodiscard]] const NetworkSpec& network() const { return network_; }
  [[nodiscard]] std::uint32_t per_node() const { return per_node_; }
  [[nodiscard]] bool nodes_are_alike() const { return network_.faults.empty(); }
  // Of the whole or, where nodes are alike, of one; and which node of it a GPU is.
  [[nodiscard]] const Topology& topology() {
    if (!built_) {
      NetworkSpec one = network_;
      if (nodes_are_alike()) one.cluster.reset();
      built_ = make_network(one, nodes_are_alike() ? per_node_ : gpus_);
    }
    return built_->topology;
  }
  [[nodiscard]] std::uint32_t topology_node(std::uint32_t gpu) const {
    return nodes_are_alike() ? gpu % per_node_ : gpu;
  }

 private:
  const NetworkSpec& network_;
  std::uint32_t gpus_;
  std::uint32_t per_node_;
  std::unique_ptr<Network> built_;
};

// Links that work both ways between the routers of `some` GPUs, each of which has one of its own, by place * places +
// place.
std::vector<std::uint32_t> links_among(System& system, const Cycle& some) {
  const Topology& topology = system.topology();
  const std::size_t places = some.size();
  std::vector<std::size_t> place_of(topology.nodes().size(), places);
  for (std::size_t place = 0; place < places; ++place) {
    place_of[topology.neighbour(system.topology_node(some[place]), 0)] = place;
  }
  std::vector<std::uint32_t> links(places * places, 0);
  for (std::uint32_t c = 0; c < topology.cables().size(); ++c) {
    const Cable& cable = topology.cables()[c];
    const std::size_t a = place_of[cable.a];
    const std::size_t b = place_of[cable.b];
    if (a == places || b == places) continue;
    std::array<std::uint32_t, 2> working{};
    for (std::uint32_t lane = 0; lane < cable.lanes; ++lane) {
      for (const std::uint32_t way : {0U, 1U}) working.at(way) += topology.lane_factor({c, way}, lane) > 0 ? 1 : 0;
    }
    links[a * places + b] += std::min(working[0], working[1]);
    links[b * places + a] = links[a * places + b];
  }
  return links;
}

std::vector<Cycle> cycles_of(const RingOrders& orders) {
  std::vector<Cycle> cycles;
  for (std::uint32_t c = 0; c < orders.cycles(); ++c) {
    Cycle& cycle = cycles.emplace_back();
    for (std::uint32_t i = 0; i < orders.ranks(); ++i) cycle.push_back(orders.after(c, 0, i));
  }
  return cycles;
}

// Of `some` GPUs of a node, by the links among them.
std::vector<Cycle> rings_of_some(System& system, const Cycle& some) {
  constexpr std::uint32_t kMost = 256;  // of larger networks groups are many, and each builds it anew
  const auto ranks = static_cast<std::uint32_t>(some.size());
  if (system.network().topology == TopologyKind::fully_connected) return cycles_of(fully_connected_rings(ranks));
  if (!has_router_for_each_gpu(system.network().topology) || system.per_node() > kMost) return {};
  return rings_of_graph(links_among(system, some), ranks);
}

// Of a whole node whose links all work; none: by number.
std::vector<Cycle> rings_of_grid_node(const NetworkSpec& network, std::uint32_t gpus) {
  std::vector<std::uint32_t> dimensions = network.dimensions;
  if (network.topology == TopologyKind::ring) dimensions = {gpus};
  if (network.topology == TopologyKind::hypercube) {
    dimensions.assign(static_cast<std::size_t>(std::countr_zero(gpus)), 2);
  }
  const std::uint32_t places = std::accumulate(dimensions.begin(), dimensions.end(), 1U, std::multiplies<>());
  if (places != gpus) return {};
  return rings_of_grid(dimensions, network.topology == TopologyKind::torus || network.topology == TopologyKind::ring);
}

// Those that do without links that are out: others by a search or, where it finds none, what is left of them.
std::vector<Cycle> around_faults(const std::vector<Cycle>& rings, System& system, const Cycle& node) {
  const auto ranks = static_cast<std::uint32_t>(node.size());
  const std::vector<std::uint32_t> links = links_among(system, node);
  std::vector<Cycle> left;
  for (const Cycle& ring : rings) {
    bool works = true;
    for (std::uint32_t i = 0; i < ranks; ++i) works = works && links[ring[i] * ranks + ring[(i + 1) % ranks]] > 0;
    if (works) left.push_back(ring);
  }
  if (left.size() == rings.size()) return rings;
  std::vector<Cycle> found = rings_of_graph(links, ranks);
  if (found.size() > left.size()) return found;
  return left.empty() ? rings : left;
}

// Of all GPUs of a node, that begins with GPU `first`; none: by number.
std::vector<Cycle> rings_of_node(System& system, std::uint32_t first) {
  Cycle all(system.per_node());
  std::iota(all.begin(), all.end(), first);
  const TopologyKind topology = system.network().topology;
  if (!has_router_for_each_gpu(topology) || topology == TopologyKind::hybrid_cube_mesh) {
    return rings_of_some(system, all);
  }
  const std::vector<Cycle> rings = rings_of_grid_node(system.network(), system.per_node());
  return system.nodes_are_alike() ? rings : around_faults(rings, system, all);
}

std::vector<std::vector<std::uint32_t>> ranks_by_node(const GpuGroup& group, std::uint32_t gpus_per_node) {
  std::vector<std::vector<std::uint32_t>> nodes;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    const bool first = rank == 0 || group[rank].value / gpus_per_node != group[rank - 1].value / gpus_per_node;
    if (first) nodes.emplace_back();
    nodes.back().push_back(rank);
  }
  return nodes;
}

std::vector<Cycle> rings_of_cluster(System& system, const GpuGroup& group) {
  const ClusterSpec& cluster = *system.network().cluster;
  const std::vector<Cycle> nodes = ranks_by_node(group, cluster.gpus_per_node);
  std::vector<std::vector<Cycle>> inside(nodes.size());  // of whole nodes; none: by number
  std::size_t most = cluster.nics_per_node;
  const std::vector<Cycle>* alike = nullptr;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].size() < cluster.gpus_per_node) continue;
    inside[n] = alike != nullptr ? *alike : rings_of_node(system, group[nodes[n].front()].value);
    if (system.nodes_are_alike()) alike = &inside[n];
    most = std::max(most, inside[n].size());
  }
  const std::uint32_t per_nic = cluster.gpus_per_node / cluster.nics_per_node;
  std::vector<Cycle> cycles(most);
  for (std::uint32_t c = 0; c < cycles.size(); ++c) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      Cycle node = nodes[n];
      for (std::uint32_t i = 0; !inside[n].empty() && i < node.size(); ++i) {
        node[i] = nodes[n].front() + inside[n][c % inside[n].size()][i];
      }
      // It leaves by NIC c, and enters by the next one or, where NICs are shared, by the same.
      const std::uint32_t last = c % cluster.nics_per_node * per_nic;
      const auto at = std::find_if(node.begin(), node.end(), [&](std::uint32_t rank) {
        return group[rank].value % cluster.gpus_per_node == last;
      });
      const auto turn = at == node.end() ? c % node.size() : static_cast<std::size_t>(at - node.begin());
      std::rotate(node.begin(), node.begin() + static_cast<std::ptrdiff_t>((turn + 1) % node.size()), node.end());
      if (n % 2 == 1) std::reverse(node.begin(), node.end());
      cycles[c].insert(cycles[c].end(), node.begin(), node.end());
    }
  }
  return cycles;
}

}  // namespace

NodesOfGroup nodes_of_group(const GpuGroup& group, std::uint32_t gpus_per_node) {
  const auto ranks = static_cast<std::uint32_t>(group.size());
  NodesOfGroup of{{}, ranks, ranks};
  for (const Cycle& node : ranks_by_node(group, gpus_per_node)) {
    of.first_ranks.push_back(node.front());
    of.fewest = std::min(of.fewest, static_cast<std::uint32_t>(node.size()));
  }
  return of;
}

std::shared_ptr<const RingOrders> rings_of_group(const NetworkSpec& network, std::uint32_t gpus,
                                                 const GpuGroup& group) {
  const auto ranks = static_cast<std::uint32_t>(group.size());
  if (ranks < 2) return nullptr;
  System system(network, gpus);
  std::vector<Cycle> cycles;
  if (group.front().value / system.per_node() != group.back().value / system.per_node()) {
    cycles = rings_of_cluster(system, group);
  } else if (ranks == system.per_node()) {
    cycles = rings_of_node(system, group.front().value);
  } else {
    Cycle some;
    for (const GpuId gpu : group) some.push_back(gpu.value);
    cycles = rings_of_some(system, some);
  }
  return cycles.empty() ? nullptr : std::make_shared<const RingOrders>(std::move(cycles));
}

}  // namespace weft
