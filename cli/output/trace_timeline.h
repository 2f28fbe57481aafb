// A recorded trace as a Perfetto trace, for looking at it.
#pragma once

#include <string>

#include "traces/trace.h"

namespace weft {

// As timeline_trace() of a run: a process a rank, a thread a stream, a slice an operation, a flow through the slices of
// one collective on all its ranks, a track of phases; further, tracks of the iterations and of the host's waits, and
// counters of what HBM and NVLink moved where the trace has that: a sample's mean from its start to its end, 0 where
// nothing was sampled. `trace` is valid (validate).
[[nodiscard]] std::string trace_timeline(const Trace& trace);

}  // namespace weft
