// Collectives through reducing switches on buffers that these reach themselves: nothing is staged.
//
// Pull (NCCL src/device/all_reduce.h, reduce_scatter.h, all_gather.h on registered buffers: two control warps, all
// others move data): after a barrier, ranks load through the switch what it sums, store through it what it copies, and
// a barrier ends it. Push: all ranks store what they have to the switch, which sends the sums to all; a rank is done
// when as many lines have come as the message has, so there is no barrier.
//
// In waves (Klenk et al., ISCA 2020), the message is cut into regions, and a GPU has a few of them under way. Else in
// NCCL's loops.
#pragma once

#include "gpu_model/in_switch_programs.h"

namespace weft {

[[nodiscard]] std::shared_ptr<const BlockPrograms> registered_in_switch_programs(const InSwitchPlace& place,
                                                                                 std::uint32_t rank);

}  // namespace weft
