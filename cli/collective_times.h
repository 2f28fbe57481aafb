// What the collectives of a recording took once all their ranks had come.
#pragma once

#include <vector>

#include "cli/system_config.h"
#include "workloads/graph.h"

namespace weft {

// By node of the graph; 0 for what is no collective. A recording does not tell waiting from moving, so each different
// collective is simulated by itself, all ranks together: a ring (what NCCL takes unless switches reduce) over as many
// GPUs of the configured system as were recorded, with as many channels. Runs in a process of its own, because SystemC
// has one elaboration a process; call it before any thread is started.
// Throws InputError for a collective that cannot be replayed.
[[nodiscard]] std::vector<Time> recorded_collective_times(const Graph& graph, const RunConfig& config);

}  // namespace weft
