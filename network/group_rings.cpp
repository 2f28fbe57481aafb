#include "network/group_rings.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "network/network.h"

namespace weft {

namespace {

using Cycle = std::vector<std::uint32_t>;

// Links between the routers of some of `gpus`, each of which has one of its own, by place * places + place.
std::vector<std::uint32_t> links_among(const NetworkSpec& network, std::uint32_t gpus, const Cycle& some) {
  NetworkSpec node = network;
  node.cluster.reset();
  node.faults.clear();
  const std::unique_ptr<Network> built = make_network(node, gpus);
  const Topology& topology = built->topology;
  const std::size_t places = some.size();
  std::vector<std::size_t> place_of(topology.nodes().size(), places);
  for (std::size_t place = 0; place < places; ++place) place_of[topology.neighbour(some[place], 0)] = place;
  std::vector<std::uint32_t> links(places * places, 0);
  for (const Cable& cable : topology.cables()) {
    const std::size_t a = place_of[cable.a];
    const std::size_t b = place_of[cable.b];
    if (a == places || b == places) continue;
    links[a * places + b] += cable.lanes;
    links[b * places + a] += cable.lanes;
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

// Of some of a node's `gpus`, by the links among them.
std::vector<Cycle> rings_of_some(const NetworkSpec& network, std::uint32_t gpus, const Cycle& some) {
  constexpr std::uint32_t kMost = 256;  // of larger networks groups are many, and each builds it anew
  const auto ranks = static_cast<std::uint32_t>(some.size());
  if (network.topology == TopologyKind::fully_connected) return cycles_of(fully_connected_rings(ranks));
  if (!has_router_for_each_gpu(network.topology) || gpus > kMost) return {};
  return rings_of_graph(links_among(network, gpus, some), ranks);
}

// Of all `gpus` of one node; none: by number.
std::vector<Cycle> rings_of_node(const NetworkSpec& network, std::uint32_t gpus) {
  std::vector<std::uint32_t> dimensions = network.dimensions;
  switch (network.topology) {
    case TopologyKind::fully_connected:
      return cycles_of(fully_connected_rings(gpus));
    case TopologyKind::ring:
      dimensions = {gpus};
      break;
    case TopologyKind::hypercube:
      dimensions.assign(static_cast<std::size_t>(std::countr_zero(gpus)), 2);
      break;
    case TopologyKind::mesh:
    case TopologyKind::torus:
      break;
    case TopologyKind::hybrid_cube_mesh: {
      Cycle all(gpus);
      std::iota(all.begin(), all.end(), 0U);
      return rings_of_some(network, gpus, all);
    }
    default:
      return {};
  }
  const std::uint32_t places = std::accumulate(dimensions.begin(), dimensions.end(), 1U, std::multiplies<>());
  if (places != gpus) return {};
  return rings_of_grid(dimensions, network.topology == TopologyKind::torus || network.topology == TopologyKind::ring);
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

std::vector<Cycle> rings_of_cluster(const NetworkSpec& network, const GpuGroup& group) {
  const ClusterSpec& cluster = *network.cluster;
  const std::vector<Cycle> nodes = ranks_by_node(group, cluster.gpus_per_node);
  const auto whole = [&](const Cycle& node) { return node.size() == cluster.gpus_per_node; };
  std::vector<Cycle> inside;
  if (std::any_of(nodes.begin(), nodes.end(), whole)) inside = rings_of_node(network, cluster.gpus_per_node);
  const std::uint32_t per_nic = cluster.gpus_per_node / cluster.nics_per_node;
  std::vector<Cycle> cycles(std::max<std::size_t>(cluster.nics_per_node, inside.size()));
  for (std::uint32_t c = 0; c < cycles.size(); ++c) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      Cycle node = nodes[n];
      if (whole(node) && !inside.empty()) {
        for (std::uint32_t i = 0; i < node.size(); ++i) node[i] = nodes[n].front() + inside[c % inside.size()][i];
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

std::uint32_t ranks_per_node(const GpuGroup& group, std::uint32_t gpus_per_node) {
  const auto nodes = ranks_by_node(group, gpus_per_node);
  const auto as_first = [&](const auto& node) { return node.size() == nodes.front().size(); };
  return std::all_of(nodes.begin(), nodes.end(), as_first) ? static_cast<std::uint32_t>(nodes.front().size()) : 0;
}

std::shared_ptr<const RingOrders> rings_of_group(const NetworkSpec& network, std::uint32_t gpus,
                                                 const GpuGroup& group) {
  const auto ranks = static_cast<std::uint32_t>(group.size());
  if (ranks < 2) return nullptr;
  const std::uint32_t per_node = network.cluster ? std::min(gpus, network.cluster->gpus_per_node) : gpus;
  std::vector<Cycle> cycles;
  if (group.front().value / per_node != group.back().value / per_node) {
    cycles = rings_of_cluster(network, group);
  } else if (ranks == per_node) {
    cycles = rings_of_node(network, ranks);
  } else {
    Cycle some;
    for (const GpuId gpu : group) some.push_back(gpu.value % per_node);
    cycles = rings_of_some(network, per_node, some);
  }
  return cycles.empty() ? nullptr : std::make_shared<const RingOrders>(std::move(cycles));
}

}  // namespace weft
