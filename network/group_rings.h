// In which orders the rings of a group of GPUs go round in a network.
//
// - On one node: arc-disjoint Hamiltonian cycles by the links among them, where there are any (fully connected, ring,
//   mesh, torus, hypercube, hybrid cube mesh; of a part of the GPUs, or around links that are out, as a search finds
//   them); else, and behind switches, by number.
// - On several nodes, each ring goes through each node once, as NCCL's do: as many orders as a node has NICs, that
//   enter and leave it by different ones. Every second node is gone through backwards, so that a ring enters a node by
//   the place by which it left the one before and stays on one rail; with an odd number of nodes once it does not.
//   (NCCL exchanges the rings of odd nodes to the same end, src/graph/connect.cc.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/network_spec.h"
#include "network/ring_orders.h"
#include "sim/program.h"

namespace weft {

// Of `group`, ascending, in a system of `gpus`. Null: by number, all channels alike.
[[nodiscard]] std::shared_ptr<const RingOrders> rings_of_group(const NetworkSpec& network, std::uint32_t gpus,
                                                               const GpuGroup& group);

// Nodes of so many GPUs that a group is on.
struct NodesOfGroup {
  std::vector<std::uint32_t> first_ranks;  // of each node
  std::uint32_t fewest = 0;                // members in a node
  std::uint32_t ranks = 0;                 // of the group
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(first_ranks.size()); }
  // Members of each node, if they are as many in each; else 0.
  [[nodiscard]] std::uint32_t in_each() const { return count() * fewest == ranks ? fewest : 0; }
};
[[nodiscard]] NodesOfGroup nodes_of_group(const GpuGroup& group, std::uint32_t gpus_per_node);

}  // namespace weft
