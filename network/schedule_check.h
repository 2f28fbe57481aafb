// Proves a schedule by carrying it out with integers instead of data: every element of every rank has a value of its
// own, so a contribution that is missing, doubled or in the wrong place shows in the result.
#pragma once

#include <cstdint>
#include <vector>

#include "network/collective_schedule.h"

namespace weft {

// What a schedule costs whatever the links are.
struct ScheduleTotals {
  std::vector<std::int64_t> sent_bytes;    // by rank
  std::vector<std::uint64_t> sent_pieces;  // by rank
  std::uint64_t longest_chain = 0;         // messages of which each could only be sent when the one before had come
};

// Carries out `schedule` and compares the result with the collective that `request` describes (kind, bytes,
// element_bytes, ranks, root). A connection holds `slots` pieces that are sent and not yet received. Ranks, blocks and
// groups are run in two orders, so that a result which depends on their order shows.
// Time and memory grow with ranks * bytes: meant for small messages.
// Throws InputError, "rank 2, block 0, group 1, step 7: expected ..., got ...", for
// - peers, blocks, groups or buffer ranges that do not exist, and pieces that are not whole elements,
// - reads of what was never written, writes to the input,
// - pieces of different sizes on the two ends of a connection, pieces that nobody receives, and connections that two
//   groups of warps use at the same end,
// - deadlock: with who waits for whom,
// - a wrong result: with the first wrong element, and what is wrong with it.
ScheduleTotals check_schedule(const CollectiveSchedule& schedule, const ScheduleRequest& request, std::uint32_t slots);

}  // namespace weft
