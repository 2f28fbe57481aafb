// Follows the routes of a network without running it.
#pragma once

#include <optional>
#include <vector>

#include "network/network.h"

namespace weft {

// The routers that a packet passes, by following the routes; 0: it does not arrive. Collects its VC classes.
// `stand_in`: the GPU at which it arrives where that stands for `to`.
inline std::uint32_t routers_passed(const Network& network, std::uint16_t from, std::uint16_t to,
                                    std::vector<std::uint8_t>* classes = nullptr,
                                    std::optional<std::uint16_t> stand_in = std::nullopt) {
  const Topology& topology = network.topology;
  Packet packet;
  packet.source = from;
  packet.destination = to;
  LinkId link = topology.out(from, topology.nodes()[from].ports - 1);
  for (std::uint32_t passed = 1; passed < 200; ++passed) {
    const std::uint32_t node = topology.to(link);
    const Cable& cable = topology.cables()[link.cable];
    const std::uint32_t in_port = link.direction == 0 ? cable.port_b : cable.port_a;
    const Hops hops = network.routing(node).next(node, in_port, packet);
    if (classes != nullptr) classes->push_back(hops.vc_class);
    packet.vc_class = hops.vc_class;
    link = topology.out(node, hops.port(hops.preferred));
    if (topology.to(link) == stand_in.value_or(to)) return passed;
  }
  return 0;
}

}  // namespace weft
