// One rank of a Kineto trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/kineto_events.h"
#include "traces/kineto_host.h"
#include "traces/peer_transfers.h"
#include "traces/trace.h"

namespace weft {

class ExecutionJoin;

// A collective; of sends and receives, whose other ends are known, each of them.
struct KinetoExchange {
  TraceCollective collective;
  std::vector<PeerTransfer> transfers;
};

// What can be known of a collective, from the kernel's arguments, else from the operators around its launch, else from
// its name. `context` may be nullptr. The world size, where the file states one, bounds the group; errors name the file
// and the event.
[[nodiscard]] KinetoExchange kineto_collective(const KinetoFile& file, const KinetoEvent& kernel,
                                               const HostContext* context);

// The operations on one GPU of the file. Times are from earliest_time(file) on. `execution`: where the file was joined
// with an execution trace, whose tensors tell further waits between streams. `exchanges`: gets the kernels of sends and
// receives, for join_exchanges().
[[nodiscard]] TraceRank kineto_rank(const KinetoFile& file, std::uint32_t rank, std::int64_t device,
                                    const ExecutionJoin* execution = nullptr,
                                    std::vector<PeerKernel>* exchanges = nullptr);

// The earliest time among the events that kineto_rank uses.
[[nodiscard]] std::int64_t earliest_time(const KinetoFile& file);

// The devices that the file's process works on, ascending; empty where it has no GPU operation. Left out, each with a
// note, are those that it only touches beside its own: copies between peers, fills, a tensor that went to the first
// GPU.
[[nodiscard]] std::vector<std::int64_t> used_devices(const KinetoFile& file, std::vector<std::string>& notes);

}  // namespace weft
