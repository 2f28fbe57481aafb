// A rank's traffic as weft's own trace files hold it; for trace_file_read.cpp and trace_file_write.cpp only.
#pragma once

#include <simdjson.h>

#include <string>

#include "traces/trace.h"

namespace weft {

// ",\n\"traffic\":{...}", columns of equal length; nothing where there is none, so that other files stay as they are.
void append_traffic(const TraceTraffic& traffic, std::string& out);

// Throws InputError with `file` and `place` for unknown and uneven columns, and for what are no integers.
[[nodiscard]] TraceTraffic read_traffic(simdjson::dom::element value, const std::string& place,
                                        const std::string& file);

}  // namespace weft
