// The links of a machine by name, and what they counted.
#include <fmt/format.h>

#include <unordered_map>

#include "cli/run/machine.h"

namespace weft {

const LaneStatistics& Machine::statistics(std::uint32_t node, std::uint32_t port, std::uint32_t lane) const {
  const TopologyNode& at = fabric_->topology().nodes()[node];
  switch (at.kind) {
    case TopologyNodeKind::gpu:
      return gpus_[at.number]->ports().transmitter(port).statistics(lane);
    case TopologyNodeKind::hub:
      return switches_[at.number]->output(port).statistics(lane);
    default:
      return fabric_->router_at(node).statistics(port, lane);
  }
}

std::vector<std::string> link_names(const Topology& topology) {
  std::vector<std::string> names;
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    std::unordered_map<std::uint32_t, std::uint32_t> lanes_to;  // by neighbour: cables between the same two go on
    for (std::uint32_t p = 0; p < topology.nodes()[n].ports; ++p) {
      const LinkId link = topology.out(n, p);
      std::uint32_t& number = lanes_to[topology.to(link)];
      for (std::uint32_t lane = 0; lane < topology.cables()[link.cable].lanes; ++lane) {
        names.push_back(fmt::format("{}.{}", topology.name(link), number++));
      }
    }
  }
  return names;
}

std::vector<Machine::Link> Machine::links() const {
  std::vector<Link> links;
  if (!fabric_) return links;
  const Topology& topology = fabric_->topology();
  std::vector<std::string> names = link_names(topology);
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    for (std::uint32_t p = 0; p < topology.nodes()[n].ports; ++p) {
      const LinkId link = topology.out(n, p);
      for (std::uint32_t lane = 0; lane < topology.cables()[link.cable].lanes; ++lane) {
        links.push_back({std::move(names[links.size()]), &statistics(n, p, lane), link, fabric_->load(link)});
      }
    }
  }
  return links;
}

}  // namespace weft
