// The tree along which the chunks of a group's messages are summed (SHARP: Graham et al., COMHPC 2016; several racks in
// SwitchML: Sapio et al., NSDI 2021). Routers sum what comes from below and send it up; the root's sums go down to all.
// NICs only pass packets on.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "network/topology.h"
#include "sim/ids.h"
#include "sim/program.h"

namespace weft {

// Its messages travel in `streams`, each with chunk numbers, a window and slots of its own.
struct AggregationGroup {
  std::vector<GpuId> gpus;
  DataType type = DataType::fp32;
  std::uint32_t streams = 1;
};

// A group's tree at one router.
struct TreePlace {
  std::vector<std::uint16_t> below;         // ports that lead to members; none: the tree is elsewhere
  std::optional<std::uint16_t> above = {};  // none: the root
  std::uint32_t contributors = 0;           // to the sums made here; 0: packets are passed on
  std::uint32_t place = 0;                  // of these sums, among the contributors of the next router that sums
};

struct AggregationTree {
  // A GPU's port to the tree, and its place among the contributors of the first router that sums.
  struct Member {
    std::uint16_t port = 0;
    std::uint32_t place = 0;
  };
  std::vector<Member> members;                               // in the order of the group
  std::vector<std::pair<std::uint32_t, TreePlace>> routers;  // by node, ascending
};

// Over the shortest paths to a router that is nearest to all members; of several such, groups take turns by `number`.
// Throws InputError when no router reaches all of them without passing through GPUs or hubs.
[[nodiscard]] AggregationTree make_aggregation_tree(const Topology& topology, const AggregationGroup& group,
                                                    std::uint32_t number);

}  // namespace weft
