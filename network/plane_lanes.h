// The lanes by which GPUs of a node reach each other through the switches of `switched`. An address takes the same lane
// on all GPUs that its traffic concerns, so a lane that one of them cannot use is of no use to the others with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/topology.h"

namespace weft {

struct LinkLane {
  std::uint32_t bundle = 0;  // the port of the GPU: the plane
  std::uint8_t lane = 0;
};

// Those that work both ways on all of `gpus`, which are of one node.
[[nodiscard]] std::vector<LinkLane> common_lanes(const Topology& topology, const std::vector<std::uint32_t>& gpus);

// The links between these GPUs and switches of which a lane is out, as "gpu0->switch1, switch2->gpu3"; of many, three.
[[nodiscard]] std::string plane_links_out(const Topology& topology, const std::vector<std::uint32_t>& gpus);

}  // namespace weft
