// What a GPU of a captured process moved over time.
#pragma once

#include <cstdint>

#include "traces/capture/captured_process.h"
#include "traces/trace.h"

namespace weft {

// On the clock of captured_rank(): from the first event of the process, and until its last; samples that lie outside,
// idle time before and behind, are left out. A sample that begins before the one before it ended (the GPU's clock is
// fitted to the host's) begins where that ended. What one sample at least has is a column; samples without one are left
// out, too. The process has an event.
[[nodiscard]] TraceTraffic captured_traffic(const CapturedProcess& process, std::int64_t device);

}  // namespace weft
