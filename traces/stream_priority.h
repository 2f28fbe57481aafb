// Priorities of recorded streams, which profilers mostly leave out.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace weft {

// Streams whose kernels and collectives began while kernels of other streams still had blocks to place. On a GPU that
// places blocks in order (LaunchSpec::blocks_in_order) they were of a higher priority: at the same one they had begun
// with the last wave. Of those that began beside a kernel of four waves or more, more did so than waited, and at least
// two. Ascending. None for a GPU by AMD, whose queues share the units in any case, and where units are not known.
[[nodiscard]] std::vector<std::uint32_t> urgent_streams(const TraceRank& rank);

}  // namespace weft
