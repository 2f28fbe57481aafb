// Operations that began later than what was recorded explains.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/trace.h"

namespace weft {

// By operation: by how much more than kLaunching it began after its issue, what it waits for, and all that this rank's
// device was at before. The device was idle and had it: a driver that loads the kernel's code, a wait that was not
// recorded. 0 where that was not so, and for collectives, which wait for other ranks.
[[nodiscard]] std::vector<Time> late_starts(const TraceRank& rank);

// The operation with which the device began the first iteration, if that was later than launching it takes though it
// waited for nothing recorded: the device was at what had been issued before.
[[nodiscard]] std::optional<std::uint32_t> begun_late(const TraceRank& rank);

}  // namespace weft
