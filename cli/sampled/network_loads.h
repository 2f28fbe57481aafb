// What all links and switches of a system did, by those that were simulated: where some GPUs stand for all, theirs are
// everybody's.
#pragma once

#include <map>

#include "cli/sampled/regime.h"
#include "network/topology.h"

namespace weft {

struct NetworkLoad {
  std::vector<LinkLoad> links;  // in the machine's order
  std::vector<SwitchLoad> switches;
};

// By the number of GPUs that were simulated.
using NetworkLoads = std::map<std::uint32_t, NetworkLoad>;

void add(const std::vector<LinkLoad>& links, const std::vector<SwitchLoad>& switches, NetworkLoad& sum);

// Of `gpus` whose network is `whole`.
[[nodiscard]] NetworkLoad loads_of_all(const NetworkSpec& network, const Topology& whole, std::uint32_t gpus,
                                       const NetworkLoads& simulated);

}  // namespace weft
