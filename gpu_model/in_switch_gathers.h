// All-gather and reduce-scatter by NVLS through staging buffers, on one node (NCCL src/device/all_gather.h and
// reduce_scatter.h). Two groups of warps in each block form a pipeline over the loops of a channel:
//
// All-gather: send stores the rank's piece to its place in the staging buffers of all, through the switch, and signals
// all; gather copies the pieces of all ranks to the user's buffer and gives the slot free. So a rank's data go out once
// and come in once from each rank, S/N and S of a result of S on N ranks; a ring moves (N-1)/N S both ways.
// Reduce-scatter: scatter copies the pieces of all ranks to its own staging buffer and signals all; reduce loads those
// of its own rank through the switch, summed, stores them to the user's buffer and gives the slot free.
//
// A slot is used again when all ranks have signalled that they have read it. NCCL keeps some of these counters with
// each rank, and who waits for all of them loads the least through the switch (src/transport/nvls.cc,
// NCCL_NVLS_MIN_POLL); here all signal all. Such a look takes `poll` before each reduction, as in the all-reduce.
// Before a send it takes nothing: it is needed only where slots are used again, and one look serves several loops.
#pragma once

#include "gpu_model/in_switch_programs.h"

namespace weft {

[[nodiscard]] std::uint32_t staged_gather_threads();
[[nodiscard]] std::shared_ptr<const BlockPrograms> staged_gather_programs(const InSwitchPlace& place,
                                                                          std::uint32_t rank);

}  // namespace weft
