// Waits between streams of a Kineto trace that has no ids of events, from the calls and the times.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/kineto_host.h"
#include "traces/kineto_launches.h"
#include "traces/kineto_waits.h"

namespace weft {

// From the end of what an operation of another stream waits for to its start.
inline constexpr std::int64_t kAsItEndsNs = 10'000;

// As fill_waits() tells. `ops`: those of `launches`.
void infer_stream_waits(const KinetoHost& host, const KinetoLaunches& launches, std::int64_t tolerance,
                        std::vector<KinetoOp>& ops);

}  // namespace weft
