// What the blocks of a collective do, told in coarser lines: for a GPU at a coarser grain (coarse_gpu.h).
#pragma once

#include <cstdint>
#include <memory>

#include "gpu_model/phase.h"

namespace weft {

// The same phases, of lines that stand for `grain` of theirs each; a piece that does not fill its last one counts as
// if it did. Null stays null.
[[nodiscard]] std::shared_ptr<const BlockPrograms> coarse(std::shared_ptr<const BlockPrograms> programs,
                                                          std::uint32_t grain);

// Of a group of warps that loads: so many lines in flight are enough for any collective.
inline constexpr std::uint32_t kFewestInFlight = 16;

// How coarse it may be told, a power of two, so that pieces still are many lines and many are in flight of a block that
// has a compute unit with such a limit of outstanding loads for itself, of those that a switch sums `fewest_sums`; 1:
// not at all, since lines carry flags, are added to or counted.
[[nodiscard]] std::uint32_t coarsest_grain(const BlockPrograms& programs, std::uint32_t most_outstanding,
                                           std::uint32_t fewest_sums = kFewestInFlight);

}  // namespace weft
