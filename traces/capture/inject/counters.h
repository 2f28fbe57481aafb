// The second pass of a capture: counters of each kernel in the place of times.
//
// CUPTI's range profiler measures each kernel alone and as often as its counters need (kernel replay). Kernels that
// wait for other GPUs cannot be replayed, because the others replay theirs at other times: at their launches, known by
// name, and at those of CUDA graphs the profiler is stopped.
#pragma once

namespace weft::capture {

// kCountersVariable is set.
[[nodiscard]] bool counters_asked();

// Where CUDA starts. Tells the user what it cannot do.
void start_counters();

}  // namespace weft::capture
