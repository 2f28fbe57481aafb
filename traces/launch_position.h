// The same launch in several iterations: what it takes alone and under communication.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/intervals.h"
#include "traces/trace.h"

namespace weft {

// When collectives of this rank run.
[[nodiscard]] std::vector<Interval> communication(const TraceRank& rank);
// When its kernels other than collectives run.
[[nodiscard]] std::vector<Interval> computation(const TraceRank& rank);

// The n-th kernel (no collective) or the n-th copy or memset of a stream in an iteration, if it has the same name and
// grid in the iterations compared. Operations outside of iterations have no position.
struct LaunchPosition {
  std::vector<std::uint32_t> ops;  // indices into TraceRank::ops, by iteration
  std::optional<Time> alone;       // median duration of those without any collective beside them
  Time shortest;                   // of all
  std::optional<Time> overlapped;  // median of those with a collective beside them for at least 90 % of their time
  // Median from the end of the operation before it on its stream to its start, of those that had been issued long
  // before, waited for nothing else, and had no collective beside them: what it costs to go on with it.
  std::optional<Time> behind;
};

[[nodiscard]] std::vector<LaunchPosition> launch_positions(const TraceRank& rank);

// The median: of an even number of values the mean of the middle two. Not empty.
[[nodiscard]] Time median(std::vector<Time> values);

}  // namespace weft
