// What is in a trace: counts, times, overlap.
#pragma once

#include <string>

#include "sim/json_reader.h"
#include "traces/trace.h"

namespace weft {

// As `weft trace info --json` prints it: { schema, source, world_size, ranks, kernels, kernels_with_counters,
// collectives, copies, memsets, host_waits, streams, iterations, communication_hidden, compute_under_communication,
// slowdown_at_equal_positions, positions, positions_slower, ranks_together, per_rank[], per_iteration[] }. Times in
// seconds, sizes in bytes; null where it does not apply. `kernels` counts all GPU kernels, `collectives` those of the
// communication library among them; `streams` and `iterations` are the most that a rank has (per_rank lists the
// streams).
//
// communication_hidden: the share of the time of collectives during which other kernels run.
// compute_under_communication: the share of those kernels' time during which a collective runs.
// slowdown_at_equal_positions: over kernels that take at least 20 us alone, the sum of their times with a collective
// beside them (for at least 90 % of the time) over the sum of their times alone, each a median at the same launch
// position over the iterations.
// ranks_together: see matched_collectives.h; null for one rank.
[[nodiscard]] Json trace_info_json(const Trace& trace);

// The same for people.
[[nodiscard]] std::string trace_info_text(const Trace& trace);

}  // namespace weft
