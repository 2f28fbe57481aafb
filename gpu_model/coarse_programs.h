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

// How coarse it may be told, a power of two, so that pieces still are many lines and many are in flight of a block that
// has a compute unit with such a limit of outstanding loads for itself; 1: not at all, since lines carry flags, are
// added to or counted.
[[nodiscard]] std::uint32_t coarsest_grain(const BlockPrograms& programs, std::uint32_t most_outstanding);

}  // namespace weft
