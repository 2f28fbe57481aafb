// Kernels of programs whose stores reduce as they leave: where their sums meet, and what counts them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/kernel_program.h"
#include "network/switch.h"

namespace weft {

class FusedOutputs {
 public:
  // The n-th fused kernel of a group on one GPU meets the n-th on all others. Adds multicast groups to `groups`, and to
  // `flags` one for each. Throws InputError for sums that switches cannot do.
  FusedOutputs(const RunConfig& config, const std::vector<Program>& programs, std::vector<MulticastGroup>& groups,
               std::uint32_t& flags);

  // By op; empty: none.
  [[nodiscard]] std::vector<const PushedOutput*> of(std::size_t gpu) const {
    return by_op_.empty() ? std::vector<const PushedOutput*>() : by_op_[gpu];
  }

 private:
  std::deque<PushedOutput> outputs_;
  std::vector<std::vector<const PushedOutput*>> by_op_;  // by GPU
};

}  // namespace weft
