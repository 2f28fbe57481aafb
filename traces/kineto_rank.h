// One rank of a Kineto trace.
#pragma once

#include <cstdint>

#include "traces/kineto_events.h"
#include "traces/kineto_host.h"
#include "traces/trace.h"

namespace weft {

// What can be known of a collective, from the kernel's arguments, else from the operators around its launch, else from
// its name. `context` may be nullptr. `world_size` bounds the group; errors name `file` and the event.
[[nodiscard]] TraceCollective kineto_collective(const KinetoFile& file, const KinetoEvent& kernel,
                                                const HostContext* context, std::uint32_t world_size);

// Times are nanoseconds after `origin`. `rank` and `device` say which GPU of the file.
[[nodiscard]] TraceRank kineto_rank(const KinetoFile& file, std::uint32_t rank, std::int64_t device,
                                    std::uint32_t world_size, std::int64_t origin);

// The earliest time among the events that kineto_rank uses.
[[nodiscard]] std::int64_t earliest_time(const KinetoFile& file);

// The devices with GPU operations in the file, ascending.
[[nodiscard]] std::vector<std::int64_t> used_devices(const KinetoFile& file);

}  // namespace weft
