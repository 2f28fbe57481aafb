// Ranks that do the same at the same time, some of them simulated for all. Where renaming ranks turns one that is
// simulated into each other one (gpu_model/rank_symmetry.h), what reaches it is what those send that are simulated:
// each packet comes back as that of the rank that stands to it as its sender to the receiver. Only addresses and flags
// differ, and those are that other rank's.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "gpu_model/phase.h"
#include "gpu_model/rank_symmetry.h"
#include "network/switch.h"

namespace weft {

struct FoldedRanks {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  std::vector<ScriptedKernel> kernels;  // of the ranks that stand for all
  // Where the multicasts of the others of its node go, seen from rank 0's: by distance, each a group of its own.
  std::vector<MulticastImages> multicasts;
  // Between nodes: how far who talks to each other is apart at most, and whether at other places in their nodes.
  std::uint32_t farthest = 0;
  bool changes_place = false;
  bool many_pairs = false;            // one with several of them
  std::set<std::uint32_t> receivers;  // whom rank 0 loads from or stores to, and who from or to it
  std::set<std::uint32_t> senders;
  std::vector<std::uint32_t> pair_of_place;  // by rank, the place in other nodes that it talks to; kNobody: none
};

// `ranks`, those of GPUs 0, `by.apart`, ..., as planned; rank 0's multicasts get the numbers from `multicast` on. Goes
// through the phases of all ranks side by side; none: they are not alike in this way. Messages that do not divide
// evenly make ranks differ: they do not fold. `known`: of several nodes, and the ranks of a collective that differs in
// its addresses only were alike; they are only compared as they run.
[[nodiscard]] std::optional<FoldedRanks> fold_ranks(const std::vector<ScriptedKernel>& ranks, const RankSymmetry& by,
                                                    std::uint16_t multicast = 0, bool known = false);

}  // namespace weft
