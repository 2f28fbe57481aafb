// From the steps of a schedule to phases of warps: each step waits for its flags, loads what came and what is its own,
// stores and passes it on. Works for every CollectiveSchedule.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu_model/phase.h"
#include "gpu_model/schedule_layout.h"

namespace weft {

// What the blocks of one rank do.
[[nodiscard]] std::shared_ptr<const BlockPrograms> schedule_programs(std::shared_ptr<const ScheduleLayout> layout,
                                                                     std::uint32_t rank);

}  // namespace weft
