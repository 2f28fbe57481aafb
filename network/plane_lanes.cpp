#include "network/plane_lanes.h"

#include <algorithm>

namespace weft {

namespace {

bool leads_to_switch(const Topology& topology, std::uint32_t gpu, std::uint32_t port) {
  return topology.nodes()[topology.neighbour(gpu, port)].kind == TopologyNodeKind::hub;
}

LinkId reverse(LinkId link) { return {link.cable, 1 - link.direction}; }

bool is_out(const Topology& topology, LinkId link) {
  const std::uint32_t lanes = topology.cables()[link.cable].lanes;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    if (topology.lane_factor(link, lane) == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<LinkLane> common_lanes(const Topology& topology, const std::vector<std::uint32_t>& gpus) {
  std::vector<LinkLane> lanes;
  const std::uint32_t first = gpus.front();
  for (std::uint32_t port = 0; port < topology.nodes()[first].ports; ++port) {
    if (!leads_to_switch(topology, first, port)) continue;
    for (std::uint32_t lane = 0; lane < topology.cables()[topology.out(first, port).cable].lanes; ++lane) {
      const bool works = std::all_of(gpus.begin(), gpus.end(), [&](std::uint32_t gpu) {
        const LinkId up = topology.out(gpu, port);
        return topology.lane_factor(up, lane) > 0 && topology.lane_factor(reverse(up), lane) > 0;
      });
      if (works) lanes.push_back({port, static_cast<std::uint8_t>(lane)});
    }
  }
  return lanes;
}

std::string plane_links_out(const Topology& topology, const std::vector<std::uint32_t>& gpus) {
  constexpr std::uint32_t kNamed = 3;
  std::string names;
  std::uint32_t found = 0;
  for (const std::uint32_t gpu : gpus) {
    for (std::uint32_t port = 0; port < topology.nodes()[gpu].ports; ++port) {
      if (!leads_to_switch(topology, gpu, port)) continue;
      const LinkId up = topology.out(gpu, port);
      for (const LinkId link : {up, reverse(up)}) {
        if (!is_out(topology, link) || ++found > kNamed) continue;
        names += (names.empty() ? "" : ", ") + topology.name(link);
      }
    }
  }
  if (found > kNamed) names += " and " + std::to_string(found - kNamed) + " more";
  return names;
}

}  // namespace weft
