// Which channels of a network packets hold while they want others.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "network/network.h"

namespace weft {

// Every way that routes allow, as dependencies between the channels (a link's direction and a class) that packets hold
// and want: they are free of deadlock if these close no cycle (Dally and Seitz, 1987). Also the longest way allowed.
struct Dependencies {
  std::map<std::array<std::uint32_t, 3>, std::set<std::array<std::uint32_t, 3>>> wants;
  std::uint32_t longest = 0;

  void follow(const Network& network, std::uint16_t from, std::uint16_t to) {
    Packet packet;
    packet.source = from;
    packet.destination = to;
    const LinkId first = network.topology.out(from, network.topology.nodes()[from].ports - 1);
    std::set<std::array<std::uint32_t, 3>> seen;
    follow(network, packet, first, 0, 1, seen);
  }

  [[nodiscard]] bool cyclic() const {
    std::map<std::array<std::uint32_t, 3>, int> open;
    for (const auto& [held, wanted] : wants) {
      open.try_emplace(held, 0);
      for (const auto& channel : wanted) ++open[channel];
    }
    std::vector<std::array<std::uint32_t, 3>> free;
    for (const auto& [channel, count] : open) {
      if (count == 0) free.push_back(channel);
    }
    std::size_t removed = 0;
    for (; !free.empty(); ++removed) {
      const auto channel = free.back();
      free.pop_back();
      const auto found = wants.find(channel);
      if (found == wants.end()) continue;
      for (const auto& next : found->second) {
        if (--open[next] == 0) free.push_back(next);
      }
    }
    return removed < open.size();
  }

 private:
  void follow(const Network& network, Packet packet, LinkId link, std::uint32_t held_class, std::uint32_t passed,
              std::set<std::array<std::uint32_t, 3>>& seen) {
    const std::array held{link.cable, std::uint32_t{link.direction}, held_class};
    if (!seen.insert(held).second) return;
    longest = std::max(longest, passed);
    const std::uint32_t node = network.topology.to(link);
    const Cable& cable = network.topology.cables()[link.cable];
    const Hops hops = network.routing(node).next(node, link.direction == 0 ? cable.port_b : cable.port_a, packet);
    for (std::uint16_t h = 0; h < hops.count; ++h) {
      const LinkId out = network.topology.out(node, hops.port(h));
      if (network.topology.to(out) == packet.destination) continue;
      wants[held].insert({out.cable, std::uint32_t{out.direction}, hops.vc_class});
      packet.vc_class = hops.vc_class;
      follow(network, packet, out, hops.vc_class, passed + 1, seen);
    }
  }
};

inline Dependencies dependencies_of(const Network& network, std::uint16_t gpus) {
  Dependencies dependencies;
  for (std::uint16_t a = 0; a < gpus; ++a) {
    for (std::uint16_t b = 0; b < gpus; ++b) {
      if (a != b) dependencies.follow(network, a, b);
    }
  }
  return dependencies;
}

}  // namespace weft
