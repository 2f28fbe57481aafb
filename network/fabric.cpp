#include "network/fabric.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/error.h"

namespace weft {

Fabric::Fabric(const NetworkSpec& spec, std::uint32_t gpus, const Origin& origin, const AggregationPlan& plan,
               std::uint32_t all)
    : network_(make_network(spec, gpus, origin, all)), wires_(topology().cables().size() * 2) {
  for (std::size_t w = 0; w < std::min(wires_.size(), kMostLoads); ++w) wires_[w].load = std::make_unique<TimeBins>();
  for (const LinkSpec& link : topology().classes()) timings_.push_back(std::make_shared<const LinkTiming>(link));
  for (const AggregationGroup& group : plan.groups) {
    trees_.push_back(make_aggregation_tree(topology(), group, static_cast<std::uint32_t>(trees_.size())));
  }
  build_routers(spec, plan);
}

// A router's places in all trees; none where it is on none.
RouterTrees Fabric::trees_at(std::uint32_t node, const AggregationPlan& plan) const {
  RouterTrees at;
  bool sums = false;
  for (std::size_t g = 0; g < trees_.size(); ++g) {
    const auto& routers = trees_[g].routers;
    const auto found = std::lower_bound(routers.begin(), routers.end(), node,
                                        [](const auto& r, std::uint32_t n) { return r.first < n; });
    if (found == routers.end() || found->first != node) continue;
    at.places.resize(trees_.size());
    at.places[g] = found->second;
    sums = sums || found->second.contributors > 0;
  }
  if (at.places.empty()) return at;
  at.loss = plan.loss;
  if (!sums) return at;
  std::uint32_t lanes = 0;
  for (std::uint32_t p = 0; p < topology().nodes()[node].ports; ++p) {
    lanes += topology().cables()[topology().out(node, p).cable].lanes;
  }
  at.aggregator = plan.make_aggregator(plan.groups, at.places, lanes);
  return at;
}

void Fabric::build_routers(const NetworkSpec& spec, const AggregationPlan& plan) {
  const Topology& topology = network_->topology;
  router_of_.resize(topology.nodes().size(), 0);
  const auto tree_domain = [&](std::uint32_t node) { return spec.cluster && topology.nodes()[node].level > 0; };
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    const TopologyNode& node = topology.nodes()[n];
    if (node.kind != TopologyNodeKind::router && node.kind != TopologyNodeKind::nic) continue;
    const std::uint16_t domain = network_->routing_of[n];
    std::vector<RouterPort> ports;
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      const LinkId link = topology.out(n, p);
      const std::uint32_t to = topology.to(link);
      const bool inside = topology.nodes()[to].kind != TopologyNodeKind::gpu && network_->routing_of[to] == domain;
      ports.push_back({.in = &in(n, p),
                       .out = &out(n, p),
                       .lanes = lanes(n, p),
                       .latency = topology.classes()[topology.cables()[link.cable].link_class].latency,
                       .terminal = !inside});
    }
    SwitchSpec timing = tree_domain(n) ? spec.cluster->switch_ : spec.switch_;
    if (node.kind == TopologyNodeKind::nic) timing.latency = spec.cluster->nic_latency;
    router_of_[n] = static_cast<std::uint32_t>(routers_.size());
    routers_.push_back(std::make_unique<Router>(timing, spec.routing.choice, n, network_->routing(n), std::move(ports),
                                                network_->vc_classes[domain], trees_at(n, plan)));
  }
}

LinkWires& Fabric::out(std::uint32_t node, std::uint32_t port) { return wires(topology().out(node, port)); }

LinkWires& Fabric::in(std::uint32_t node, std::uint32_t port) { return wires(topology().in(node, port)); }

std::vector<std::shared_ptr<const LinkTiming>> Fabric::lanes(std::uint32_t node, std::uint32_t port) const {
  const LinkId link = topology().out(node, port);
  const Cable& cable = topology().cables()[link.cable];
  std::vector<std::shared_ptr<const LinkTiming>> lanes(cable.lanes, timings_[cable.link_class]);
  for (std::uint32_t lane = 0; lane < cable.lanes; ++lane) {
    const double factor = topology().lane_factor(link, lane);
    if (factor == 1) continue;
    lanes[lane] = nullptr;
    if (factor == 0) continue;
    const auto key = std::pair(cable.link_class, factor);
    const auto known = std::find_if(degraded_.begin(), degraded_.end(), [&](const auto& d) { return d.first == key; });
    if (known == degraded_.end()) {
      lanes[lane] = std::make_shared<const LinkTiming>(topology().classes()[cable.link_class], factor);
      degraded_.emplace_back(key, lanes[lane]);
    } else {
      lanes[lane] = known->second;
    }
  }
  return lanes;
}

Time Fabric::window() const {
  Time smallest = Time::max();
  for (const Cable& cable : topology().cables()) {
    smallest = std::min(smallest, topology().classes()[cable.link_class].latency);
  }
  return smallest;
}

void Fabric::add_to(Conductor& engine, const std::function<const Chip&(std::uint32_t node)>& chip_at) {
  for (const auto& router : routers_) engine.add_chip(topology().name(router->node()), *router);
  const auto chip = [&](std::uint32_t node) -> const Chip& {
    const TopologyNodeKind kind = topology().nodes()[node].kind;
    if (kind == TopologyNodeKind::router || kind == TopologyNodeKind::nic) return router_at(node);
    return chip_at(node);
  };
  for (std::uint32_t c = 0; c < topology().cables().size(); ++c) {
    for (const std::uint32_t direction : {0U, 1U}) {
      const LinkId link{c, direction};
      const Chip& from = chip(topology().from(link));
      const Chip& to = chip(topology().to(link));
      engine.add_wire(wires(link).packets, from, to);
      engine.add_wire(wires(link).credits, from, to);
    }
  }
}

// Each queue's head waits for one place: that of a lane and virtual channel into the next router, where again the head
// waits for one. So the graph has one way out of each place, and who follows it long enough is in the cycle.
std::string Fabric::waiting_cycle() const {
  using Place = std::tuple<std::uint32_t, std::uint32_t, int, std::uint8_t>;  // link, lane, message class, VC class
  const auto index = [](LinkId link) { return link.cable * 2 + link.direction; };
  std::map<Place, Place> waits_for;
  for (const auto& router : routers_) {
    for (const Router::Blocked& b : router->blocked()) {
      const LinkId out = topology().out(router->node(), b.out_port);
      LinkId in = topology().out(router->node(), b.in_port);
      in.direction = 1 - in.direction;
      waits_for[{index(in), b.in_lane, static_cast<int>(b.channel), b.in_class}] = {
          index(out), b.out_lane, static_cast<int>(b.channel), b.out_class};
    }
  }
  std::map<Place, std::size_t> visited;  // by which walk
  std::size_t walk = 0;
  for (const auto& [start, ignored] : waits_for) {
    ++walk;
    Place at = start;
    while (waits_for.contains(at) && !visited.contains(at)) {
      visited[at] = walk;
      at = waits_for.at(at);
    }
    if (!waits_for.contains(at) || visited.at(at) != walk) continue;
    std::string text = "packets wait for each other in a cycle: ";
    const Place first = at;
    do {
      const auto& [link, lane, channel, vc_class] = at;
      text += topology().name(LinkId{link / 2, link % 2}) + "." + std::to_string(lane) +
              (channel == 0 ? " requests" : " responses") + " class " + std::to_string(vc_class) + " waits for ";
      at = waits_for.at(at);
    } while (at != first);
    return text + topology().name(LinkId{std::get<0>(first) / 2, std::get<0>(first) % 2}) + "." +
           std::to_string(std::get<1>(first)) + " again";
  }
  return "";
}

}  // namespace weft
