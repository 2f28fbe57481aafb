// From a recorded rank to the operation graph that schemes replay.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/trace.h"
#include "workloads/graph.h"

namespace weft {

// The operations of `trace.ranks[rank_index]` that belong to an iteration, in the host's order of issue, with waits as
// dependencies (stream order is implied) and what was recorded of each: `alone` is the median duration at its launch
// position over the iterations, of instances without any collective beside them; if there are none, that of the same
// name and launch shape elsewhere; if none, absent, or with `fit_overlapped` the shortest at its position. Copies
// within the GPU and memsets become kernels of copy_shape(); demands are guessed (kernel_demand.h).
//
// A trace does not tell which memory a kernel touches: outputs are tensors in rotation (replay_tensors.h); a kernel
// reads the output of the kernel before it on its stream where that is of a fitting size, else a tensor of its own.
//
// Throws InputError naming the trace's source and the operation when a collective lacks its number of elements or type,
// which files of older PyTorch do; importing and inspecting such a trace works.
[[nodiscard]] Graph graph_from_trace(const Trace& trace, std::size_t rank_index, bool fit_overlapped = false);

// Of every rank, for a replay of all: they begin as far apart as their first iterations did.
[[nodiscard]] std::vector<Graph> graphs_from_trace(const Trace& trace, bool fit_overlapped = false);

}  // namespace weft
