// Requests of small messages, and what their schedules send.
#pragma once

#include <numeric>

#include "network/collective_algorithm.h"
#include "network/schedule_check.h"

namespace weft {

using Algorithm = CollectiveAlgorithm;
using Kind = CollectiveKind;

// Small pieces, so that small messages have several loops.
inline ScheduleRequest request(Kind kind, std::uint32_t ranks, std::int64_t bytes) {
  return {.kind = kind, .bytes = bytes, .ranks = ranks, .piece_bytes = 128, .pieces_per_chunk = 2, .ranks_per_node = 1};
}

inline std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

inline ScheduleTotals totals(Algorithm algorithm, const ScheduleRequest& r) {
  return check_schedule(*make_schedule(algorithm, r), r, 3);
}

}  // namespace weft
