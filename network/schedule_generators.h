// One factory an algorithm; make_schedule (collective_algorithm.h) is the door. All compute a step in constant time
// and none throws: make_schedule has checked the request.
#pragma once

#include <memory>

#include "network/collective_schedule.h"

namespace weft {

// all_reduce, all_gather, reduce_scatter; broadcast and reduce as chains from and to the root.
[[nodiscard]] std::unique_ptr<CollectiveSchedule> make_ring(const ScheduleRequest& request);

}  // namespace weft
