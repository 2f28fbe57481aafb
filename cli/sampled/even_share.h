// Messages of which all ranks have the same share, so that some of them can stand for all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/collective_kernel.h"
#include "gpu_model/rank_symmetry.h"

namespace weft {

// A message of about as many bytes as a collective's, and how its ranks then are alike.
struct Evened {
  EvenMessage message;
  RankSymmetry by;
  double scatter = 0;        // how far off its time may be, one standard deviation as a share of it
  bool alike_trees = false;  // it goes by trees in which all nodes are alike (network/binary_tree.h)
};

// For the collective of a program's operation, by the first of `ways` that goes. None: not found, `why_not` says why,
// in words.
[[nodiscard]] std::optional<Evened> evened(const RunConfig& config, const ProgramOp& op,
                                           const std::vector<RankSymmetry>& ways, std::string& why_not);

}  // namespace weft
