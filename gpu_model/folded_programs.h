// Ranks that do the same at the same time, one of them simulated for all. Where rank r does to rank r + k what rank 0
// does to rank k, what reaches rank 0 is what it sends itself: each packet comes back as that of the rank that stands
// to rank 0 as rank 0 to the receiver. Only addresses and flags differ, and those are that other rank's.
#pragma once

#include <optional>
#include <vector>

#include "gpu_model/phase.h"
#include "network/switch.h"

namespace weft {

struct FoldedRank {
  ScriptedKernel kernel;  // of rank 0
  // Where the others' multicasts go, seen from rank 0's: by distance, each a multicast group of its own.
  std::vector<MulticastImages> multicasts;
};

// `ranks` by place in `group`, as planned; rank 0's multicasts get the numbers from `multicast` on. Goes through the
// phases of all ranks side by side; none: they are not alike. Messages that do not divide evenly make ranks differ:
// they do not fold.
[[nodiscard]] std::optional<FoldedRank> fold_ranks(const std::vector<ScriptedKernel>& ranks, const GpuGroup& group,
                                                   std::uint16_t multicast = 0);

}  // namespace weft
