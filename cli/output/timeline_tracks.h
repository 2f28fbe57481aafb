// Which track of the timeline each operation goes to, and which slices belong to one collective.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/run/result.h"

namespace weft {

// Simulated seconds as whole nanoseconds, the unit of the trace.
[[nodiscard]] std::uint64_t trace_ns(double seconds);

// Operations of one stream that do not overlap, ascending by start; indices into RunResult::operations.
struct TimelineTrack {
  std::uint32_t gpu = 0, stream = 0;
  std::uint32_t overflow = 0;  // 0: the stream itself; n: the n-th extra track for operations that overlap
  bool communication = false, compute = false;  // kinds of operations on it
  std::vector<std::size_t> operations;
};

// Tracks ascending by (gpu, stream, overflow).
[[nodiscard]] std::vector<TimelineTrack> timeline_tracks(const RunResult& result);

// A flow id for each operation, 0 for those without: the n-th communication operation of a name and iteration on one
// GPU belongs to the n-th on all others. A flow has at least two operations; ids are dense from 1.
[[nodiscard]] std::vector<std::uint64_t> collective_flows(const RunResult& result,
                                                          const std::vector<TimelineTrack>& tracks);

// A stretch of compute operations of one phase and iteration on one GPU, whatever their streams. Where the next phase
// begins before the last ends, it counts from that end: spans of a GPU do not overlap.
struct PhaseSpan {
  std::uint32_t gpu = 0, iteration = 0;
  TrainingPhase phase = TrainingPhase::other;
  double start_s = 0, end_s = 0;
};

// Ascending by (gpu, start); operations of no phase are in none.
[[nodiscard]] std::vector<PhaseSpan> phase_spans(const RunResult& result);

}  // namespace weft
