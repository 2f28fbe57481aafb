// A Perfetto trace as JSON of Chrome's trace event format, for tools that read that (chrome://tracing, scripts).
#pragma once

#include <string>

namespace weft {

// `bytes`: a perfetto.protos.Trace of what timeline_trace() writes; errors name `source`. Slices become complete events
// (ph X), flows s, t and f, counters C, names M; times in microseconds. A track without a thread, such as phases, gets
// a thread of its own in its process. Throws InputError for what is no such trace. Format: "Trace Event Format",
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
[[nodiscard]] std::string chrome_trace(const std::string& bytes, const std::string& source);

}  // namespace weft
