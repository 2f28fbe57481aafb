// The clocks of ranks: recorded on several hosts, they are milliseconds apart, while collectives of them end within
// microseconds of each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// Whether the rank's times can be told `ns` later: within 2.5 hours.
[[nodiscard]] bool can_shift(const TraceRank& rank, std::int64_t ns);
// All times of the rank `ns` later. Throws InputError, naming `file`, where that is beyond 2.5 hours.
void shift_times(TraceRank& rank, std::int64_t ns, const std::string& file);

struct ClockAlignment {
  bool moved = false;         // false: no collective of several ranks ends at once, or clocks are within the tolerance
  Time most;                  // by which a rank moved against the others' middle
  std::vector<Time> earlier;  // by index of rank: how much its clock was ahead
};

// Moves each rank by a constant, so that its collectives end, in the median, with those of the ranks it meets in them.
// Ranks that never meet are joined by those between them. A clock's drift within the recording is left. The trace then
// begins at 0, and `notes` and TraceRank::clock_moved say how far ranks moved. Nothing moves where no rank would by
// `tolerance`, or one would beyond 2.5 hours.
ClockAlignment align_clocks(Trace& trace, std::vector<std::string>& notes, Time tolerance = Time());

}  // namespace weft
