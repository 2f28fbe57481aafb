// How much of a GPU's memory and links a rank used.
#pragma once

#include <string>

#include "sim/json_reader.h"
#include "traces/trace.h"

namespace weft {

// { samples, time_s, hbm_GBps, nvlink_received_GBps, nvlink_sent_GBps } of the spans whose middle lies in an iteration;
// each rate { mean, highest }, the highest of one span, and null where it was not measured. HBM's is that of reads and
// writes together, which share it. Null without such spans.
[[nodiscard]] Json traffic_info(const TraceRank& rank);

// The same as a line, "HBM 812.4 GB/s (highest 1403.0), ...".
[[nodiscard]] std::string traffic_text(const Json& info);

}  // namespace weft
