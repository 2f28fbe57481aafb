// Where the collectives of a replay meet: on which GPUs, as which of their group's, and in which memory.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/graph.h"

namespace weft {

struct Meeting {
  GpuGroup group;
  std::uint32_t sequence = 0;
  std::uint64_t buffer = 0;  // the same address on all of the group
  Bytes bytes;               // of the rank that gives the most
  Time late;                 // this rank comes so much later than it could
};

// By rank and node, of the first `iterations`; empty for nodes that are no collectives. `ranks[g]` is what GPU g
// replays, ascending by recorded rank, and all of the recorded world.
//
// The n-th collective of a communicator in an iteration on one rank is the n-th on the others. One without ranks is
// that of those who name it, or of all where it has no name either: then the n-th of its kind. Buffers lie from
// `first_address` on, one for the n-th of a communicator in each iteration, as large as the largest needs.
//
// Throws InputError when a rank of a group takes no part in one of its collectives, or another one.
[[nodiscard]] std::vector<std::vector<Meeting>> meetings_of_ranks(const std::vector<Graph>& ranks,
                                                                  std::uint32_t iterations,
                                                                  std::uint64_t first_address);

}  // namespace weft
