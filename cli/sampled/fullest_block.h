// How unevenly a library's cut shares out a message.
#pragma once

#include <cstdint>

#include "gpu_model/collective_kernel.h"

namespace weft {

// What the fullest thread block stores, of all ranks together, as a share of the mean: what a rank does on a block may
// be another's on another one. And what all would send if each phase were the longest, and all had as many, likewise.
struct Fullest {
  double block = 1, phase = 1;
  // And what the fullest block of a rank sends if each of its phases is as long as the longest of any rank's at that
  // place, likewise: who follows the longest piece round a ring never waits.
  double in_step = 1;
  std::int64_t piece = 0;  // lines of the longest that is sent
};
// Goes through the phases of up to 16 ranks.
[[nodiscard]] Fullest fullest_of(const CollectivePlan& plan);

}  // namespace weft
