#include "network/network.h"

#include <algorithm>
#include <map>

#include "network/network_builder.h"
#include "network/plane_lanes.h"
#include "network/table_routing.h"
#include "sim/error.h"

namespace weft {

std::unique_ptr<Network> make_network(const NetworkSpec& spec, std::uint32_t gpus, const Origin& origin,
                                      std::uint32_t all) {
  return NetworkBuilder(spec, gpus, origin, std::max(gpus, all)).build();
}

NetworkBuilder::NetworkBuilder(const NetworkSpec& spec, std::uint32_t gpus, const Origin& origin, std::uint32_t all)
    : spec_(spec),
      gpus_(gpus),
      all_(all),
      origin_(origin),
      network_(std::make_unique<Network>()),
      topology_(network_->topology) {
  WEFT_CHECK(gpus > 0 && gpus < 65536, "packets name GPUs in 16 bits");
  link_class_ = topology_.add_class(spec.link);
  injection_class_ = spec.injection ? topology_.add_class(*spec.injection) : link_class_;
}

void NetworkBuilder::refuse(const std::string& key, const std::string& message) const {
  throw InputError(origin_.file, origin_.path + (key.empty() ? "" : "/" + key), message);
}

void NetworkBuilder::expect_places(std::uint64_t places, std::uint32_t count, const std::string& key) const {
  if (places < count) {
    refuse(key, "expected places for " + std::to_string(count) + " GPUs (" +
                    (spec_.cluster ? "gpus_per_node" : "max_gpus") + "), got " + std::to_string(places));
  }
}

std::unique_ptr<Network> NetworkBuilder::build() {
  for (std::uint32_t g = 0; g < gpus_; ++g) topology_.add_node(TopologyNodeKind::gpu);
  network_->gpus_per_node = spec_.cluster ? std::min(spec_.cluster->gpus_per_node, gpus_) : gpus_;
  for (std::uint32_t first = 0; first < gpus_; first += network_->gpus_per_node) {
    add_node_network(first, std::min(network_->gpus_per_node, gpus_ - first));
  }
  if (spec_.cluster && all_ > spec_.cluster->gpus_per_node) add_cluster();
  topology_.index_ports();
  topology_.set_faults(spec_.faults, origin_);
  check_gpu_links();
  if (spec_.topology == TopologyKind::switched && !spec_.faults.empty()) check_planes();
  if (topology_.any_out_of_order()) route_around_faults();
  for (const auto& routing : network_->routings) {
    const std::uint32_t wanted = spec_.routing.virtual_channels;
    network_->vc_classes.push_back(wanted > 0 ? wanted : routing->vc_classes());
  }
  return std::move(network_);
}

void NetworkBuilder::add_node_network(std::uint32_t first, std::uint32_t count) {
  if (gpus_ == 1 && all_ > 1 && has_router_for_each_gpu(spec_.topology) && !spec_.cluster) {
    add_stand_in(first);
    return;
  }
  switch (spec_.topology) {
    case TopologyKind::switched:
      add_switched(first, count);
      return;
    case TopologyKind::fully_connected:
      add_fully_connected(first, count);
      return;
    case TopologyKind::ring:
    case TopologyKind::mesh:
    case TopologyKind::torus:
    case TopologyKind::hypercube:
      add_grid(first, count);
      return;
    case TopologyKind::hybrid_cube_mesh:
      add_hybrid_cube_mesh(first, count);
      return;
    case TopologyKind::fat_tree: {
      TreeParts parts{.spec = spec_.tree,
                      .terminals = {},
                      .terminal_class = injection_class_,
                      .link_class = link_class_,
                      .terminal_lanes = spec_.injection_lanes,
                      .lanes = spec_.lanes,
                      .layout = {},
                      .key = "tree"};
      if (spec_.cluster) refuse("topology", "expected one of a node's networks in a cluster, got \"fat_tree\"");
      for (std::uint32_t g = first; g < first + count; ++g) parts.terminals.push_back(g);
      parts.all = all_;
      parts.layout.gpus = count;
      add_tree(std::move(parts));
      return;
    }
    case TopologyKind::dragonfly:
      add_dragonfly(first, count);
      return;
    case TopologyKind::graph:
      add_graph(first, count);
      return;
  }
}

std::uint32_t NetworkBuilder::add_routers(std::uint32_t count, std::uint8_t level) {
  const auto first = static_cast<std::uint32_t>(topology_.nodes().size());
  for (std::uint32_t r = 0; r < count; ++r) topology_.add_node(TopologyNodeKind::router, level);
  return first;
}

void NetworkBuilder::attach_gpu(std::uint32_t gpu, std::uint32_t router) {
  topology_.connect(gpu, router, injection_class_, spec_.injection_lanes);
}

void NetworkBuilder::route(std::unique_ptr<Routing> routing, std::uint32_t first, std::uint32_t count) {
  network_->routing_of.resize(topology_.nodes().size(), 0);
  for (std::uint32_t n = first; n < first + count; ++n) {
    network_->routing_of[n] = static_cast<std::uint16_t>(network_->routings.size());
  }
  network_->routings.push_back(std::move(routing));
  domains_.push_back({first, count});
}

void NetworkBuilder::route_around_faults() {
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    const auto [first, count] = domains_[d];
    if (topology_.nodes()[first].kind != TopologyNodeKind::router) continue;  // NICs have one way out
    bool broken = false;
    for (std::uint32_t n = first; n < first + count; ++n) {
      for (std::uint32_t p = 0; p < topology_.nodes()[n].ports; ++p) {
        broken = broken || topology_.out_of_order(topology_.out(n, p));
      }
    }
    if (!broken) continue;
    network_->routings[d] = std::make_unique<TableRouting>(topology_, spec_.routing.graph, first, count,
                                                           Origin{origin_.file, origin_.path + "/faults"});
  }
}

// What no route can avoid: the link of a GPU to its router or to a peer, and of a NIC; and any lane between a leaf and
// a spine of `switched`, whose number goes by the address.
void NetworkBuilder::check_gpu_links() const {
  for (std::uint32_t c = 0; c < topology_.cables().size(); ++c) {
    for (const std::uint32_t direction : {0U, 1U}) {
      const LinkId link{c, direction};
      const TopologyNodeKind from = topology_.nodes()[topology_.from(link)].kind;
      const TopologyNodeKind to = topology_.nodes()[topology_.to(link)].kind;
      if (from == TopologyNodeKind::hub && to == TopologyNodeKind::hub) {
        for (std::uint32_t lane = 0; lane < topology_.cables()[c].lanes; ++lane) {
          if (topology_.lane_factor(link, lane) > 0) continue;
          refuse("faults", "expected leaf and spine switches whose lanes all work, got one without a lane of " +
                               topology_.name(link));
        }
      }
      if (!topology_.out_of_order(link)) continue;
      if (from == TopologyNodeKind::hub || to == TopologyNodeKind::hub) continue;  // other switches are left
      if (from == TopologyNodeKind::router && to == TopologyNodeKind::router) continue;
      refuse("faults",
             "expected a network in which all GPUs reach each other, got one without " + topology_.name(link));
    }
  }
}

// Any two GPUs of a node need a switch that both reach: nothing goes from switch to switch.
void NetworkBuilder::check_planes() const {
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    if (plane_links_out(topology_, {g}).empty()) continue;
    const std::uint32_t first = g / network_->gpus_per_node * network_->gpus_per_node;
    for (std::uint32_t other = first; other < std::min(first + network_->gpus_per_node, gpus_); ++other) {
      if (other == g || !common_lanes(topology_, {g, other}).empty()) continue;
      const bool cut_off = common_lanes(topology_, {g}).empty();
      refuse("faults", "expected a network in which all GPUs reach each other, got no lane that works for " +
                           (cut_off ? topology_.name(g) : topology_.name(g) + " and " + topology_.name(other)) + ": " +
                           plane_links_out(topology_, cut_off ? std::vector{g} : std::vector{g, other}) + " out");
    }
  }
}

}  // namespace weft
