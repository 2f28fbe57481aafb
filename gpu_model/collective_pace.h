// Collectives that have GPUs for themselves settle: in a phase of many rounds, each group of warps goes through them at
// a pace that stays. What the groups are at, and how they go on by rounds that are left out (gpu_pace.cpp).
#pragma once

#include <cstdint>
#include <functional>

#include "gpu_model/l2_cache.h"
#include "gpu_model/phase.h"

namespace weft {

// A group of warps in the middle of a phase.
struct PacedWarps {
  std::uint64_t kind = 0;  // a hash of what the phase does, but for addresses and flags
  std::uint32_t agent = 0;
  std::uint32_t phase = 0;   // how many it has been through
  std::uint32_t done = 0;    // rounds that are through
  std::uint32_t ahead = 0;   // the round that it loads
  std::uint32_t rounds = 0;  // of the phase
  std::uint32_t stages = 0;  // rounds whose loads may be in flight
};

// Lines of another GPU's memory that were left out: its L2 has them then.
using TouchElsewhere = std::function<void(const LineStream&, const L2Cache::Lines&, bool stored)>;

}  // namespace weft
