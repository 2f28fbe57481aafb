// How late the other ranks of a recording came to its collectives, where only one of them was recorded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "workloads/graph.h"
#include "workloads/replay.h"

namespace weft {

// What the collectives of a recording took by themselves once all their ranks had come, by node of the graph; 0 for
// what is no collective. A recording does not tell waiting from moving, so each different collective is simulated by
// itself, all ranks together: a ring (what NCCL takes unless switches reduce) over as many GPUs of the configured
// system as were recorded, with as many channels. Throws InputError for a collective that cannot be replayed.
[[nodiscard]] std::vector<Time> recorded_collective_times(const Graph& graph, const RunConfig& config);

// What a collective took longer because kernels ran beside it was no waiting either: takes it from the delays of the
// late GPUs in `programs` (replay(graph, spec), whatever system and collectives they are to run on). How much that was
// is simulated, too: the recorded run as above, with these delays, what meets in detail (sampled/ranks_apart.h). Left
// as they are, false, where that run had more than 8 ranks and more than `config` has.
bool take_contention_from_waits(const RunConfig& config, const Graph& graph, ReplaySpec spec,
                                std::vector<Program>& programs,
                                const std::function<void(double, const std::string&)>& progress);

}  // namespace weft
