// What the page of a run shows, as the JSON document that is embedded in it.
#pragma once

#include <cstddef>

#include "cli/run/result.h"

namespace weft {

// Of `document` (result.json), and of `records` the operations and counters:
// { title, verdict, result (result.json), figures, timeline { streams, names, operations, counters, left_out },
//   lost [ kernels by time lost ] }. operations are rows [stream, name, phase, iteration, start_ns, duration_ns,
// isolated_ns or -1, flow, causes in ns...] with trailing zero causes left out.
[[nodiscard]] Json report_data(const Json& document, const RunResult& records, std::size_t most_operations);

// The kernels that lost most time to communication beside them, by name and summed over GPUs, iterations and calls:
// [ { name, phase, calls, isolated_s, lost_s, slowdown, causes{} } ], at most `count`, most first.
[[nodiscard]] Json kernels_that_lost_most(const RunResult& result, std::size_t count);

}  // namespace weft
