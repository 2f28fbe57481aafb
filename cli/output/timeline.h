// timeline.pftrace: the run as a Perfetto trace (https://ui.perfetto.dev opens it).
#pragma once

#include <string>

#include "cli/output/perfetto_writer.h"
#include "cli/output/timeline_tracks.h"
#include "cli/run/result.h"

namespace weft {

// A serialised perfetto.protos.Trace. A process a GPU, a thread a stream, a slice an operation (ns; categories
// "compute" or "communication" and the phase; annotations for slowdown, time alone and causes), a flow through the
// slices of one collective on all its GPUs, a track of phases a GPU, a counter track a CounterTrack in a group of its
// kind. An operation that overlaps an earlier one of its stream goes to a child track of that stream, so that slices on
// one track never cross.
[[nodiscard]] std::string timeline_trace(const RunResult& result);

// What a timeline of a recorded trace (trace_timeline.h) has in common with it.
[[nodiscard]] std::string track_name(const TimelineTrack& track);
[[nodiscard]] PerfettoSlice phase_slice(const PhaseSpan& span, PerfettoTrack track);

}  // namespace weft
