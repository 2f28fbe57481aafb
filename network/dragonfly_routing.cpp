#include "network/dragonfly_routing.h"

namespace weft {

DragonflyRouting::DragonflyRouting(const Topology& topology, const DragonflySpec& spec, std::uint32_t first,
                                   std::uint32_t count)
    : first_(first), gpus_per_router_(spec.gpus_per_router), routers_per_group_(spec.routers_per_group), ports_(count) {
  struct GlobalLink {
    std::uint32_t exit, entry;  // routers
    std::uint16_t port;         // of the exit
  };
  const std::uint32_t a = routers_per_group_;
  std::vector<std::uint16_t> local(std::size_t{a} * a);  // ports of a router of the group to another
  std::vector<std::uint16_t> ports;
  for (std::uint32_t base = 0; base < count; base += a) {
    std::vector<std::vector<GlobalLink>> links(count / a);  // by the group that they lead to
    for (std::uint32_t router = base; router < base + a; ++router) {
      for (std::uint32_t p = 0; p < topology.nodes()[first + router].ports; ++p) {
        const std::uint32_t node = topology.neighbour(first + router, p);
        if (node < first) continue;  // a GPU
        const std::uint32_t peer = node - first;
        const auto port = static_cast<std::uint16_t>(p);
        if (peer / a == base / a) {
          local[(router - base) * a + peer - base] = port;
        } else {
          links[peer / a].push_back({router, peer, port});
        }
      }
    }
    for (std::uint32_t router = base; router < base + a; ++router) {
      const auto to_peer = [&](std::uint32_t peer) { return local[(router - base) * a + peer - base]; };
      for (std::uint32_t target = 0; target < count; ++target) {
        if (target / a == base / a) {
          if (target != router) ports_.add(router, target, {to_peer(target)});
          continue;
        }
        ports.clear();
        int fewest = 3;  // local hops
        for (const GlobalLink& link : links[target / a]) {
          const int hops = (link.exit != router ? 1 : 0) + (link.entry != target ? 1 : 0);
          if (hops > fewest) continue;
          if (hops < fewest) ports.clear();
          fewest = hops;
          ports.push_back(link.exit == router ? link.port : to_peer(link.exit));
        }
        ports_.add(router, target, ports);
      }
    }
  }
}

Hops DragonflyRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const std::uint32_t router = node - first_;
  const std::uint32_t target = target_of(packet);
  const std::uint32_t last = target / gpus_per_router_;
  if (router == last) return one_port(target % gpus_per_router_);
  Hops hops = ports_.towards(router, last, target);
  const std::uint32_t group = router / routers_per_group_;
  const std::uint32_t from = origin_of(packet) / gpus_per_router_ / routers_per_group_;
  hops.vc_class = group == last / routers_per_group_ && group != from ? 1 : 0;
  return hops;
}

}  // namespace weft
