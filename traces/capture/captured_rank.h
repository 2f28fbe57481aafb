// One GPU of a captured process as a rank of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture/captured_process.h"
#include "traces/trace.h"

namespace weft {

struct CapturedRank {
  // Which communicator an operation's group is. Its ranks are known when all processes are.
  struct Group {
    std::uint32_t op;
    std::uint64_t communicator;
    std::optional<std::uint32_t> peer;  // of send_receive: its number there
  };

  TraceRank rank;              // its number is not set
  std::int64_t origin_ns = 0;  // of its times, on the clock of the process
  std::vector<Group> groups;
  std::vector<CapturedCommunicator> communicators;
};

// Operations, launches, phases, iterations and waits as from a profile (traces/kineto_rank.h), and what a profile does
// not tell: waits by the edges of CUDA graphs, what NCCL said of its kernels, and what the GPU moved over time. Throws
// InputError as kineto_rank.
[[nodiscard]] CapturedRank captured_rank(const CapturedProcess& process, std::int64_t device);

}  // namespace weft
