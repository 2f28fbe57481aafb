#include "cli/run/switch_place.h"

namespace weft {

SwitchPlace switch_place(const Topology& topology, std::uint32_t node) {
  const auto is_gpu = [&](std::uint32_t at) { return topology.nodes()[at].kind == TopologyNodeKind::gpu; };
  const auto gpus_of_leaf = [&](std::uint32_t leaf) {
    std::uint32_t gpus = 0;
    while (gpus < topology.nodes()[leaf].ports && is_gpu(topology.neighbour(leaf, gpus))) ++gpus;
    return gpus;
  };
  SwitchPlace place;
  const std::uint32_t below = topology.neighbour(node, 0);
  place.spine = !is_gpu(below);
  place.first_gpu = place.spine ? topology.neighbour(below, 0) : below;
  place.gpus = gpus_of_leaf(place.spine ? below : node);
  place.ports_up = place.spine ? 0 : topology.nodes()[node].ports - place.gpus;
  if (place.spine) {
    place.gpus_per_port = place.gpus;
    place.gpus = 0;
    for (std::uint32_t p = 0; p < topology.nodes()[node].ports; ++p) {
      place.gpus += gpus_of_leaf(topology.neighbour(node, p));
    }
  }
  place.interleave = 0;
  for (std::uint32_t p = 0; p < topology.nodes()[place.first_gpu].ports; ++p) {
    const LinkId link = topology.out(place.first_gpu, p);
    if (topology.nodes()[topology.to(link)].kind == TopologyNodeKind::hub) {
      place.interleave += topology.cables()[link.cable].lanes;
    }
  }
  return place;
}

}  // namespace weft
