// The same collective on several ranks: who came late, and what it costs once all are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

struct MatchedCollective {
  struct Member {
    std::size_t rank;  // index into Trace::ranks
    std::uint32_t op;
  };

  std::string iteration;  // its name; empty outside of all
  std::string group;      // its name; empty when not recorded
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<Member> members;  // ascending by rank
  Time start_spread;            // between the first start and the last
  Time end_spread;
  Time shortest;  // over ranks: of who came last, so what the collective costs
  Time median;
  Time longest;
};

struct MatchedCollectives {
  std::vector<MatchedCollective> matched;  // in order of the first start
  std::size_t unmatched = 0;               // operations that not every recorded rank of the group has
  std::vector<Time> waiting;               // by rank: time within matched collectives beyond the shortest
  // By rank: how much later its clock is than the others', by the median over collectives that end at once, of its
  // end less the median end. Absent where it has none of these.
  std::vector<std::optional<Time>> clock_offset;
};

// All of its ranks have what any of them contributed: nobody is done before the last one came.
[[nodiscard]] bool ends_everywhere(CollectiveKind kind);
// And nobody is done long before the others, so that the ends tell clocks apart. Not all_to_all, whose parts may be
// uneven, and as which kernels of sends and receives count that name no peer.
[[nodiscard]] bool ends_at_once(CollectiveKind kind);

// The n-th collective of a group in an iteration on one rank is the n-th on another; where no group was recorded, the
// n-th of its kind. The ranks of a group whose list was not recorded are those that use its name.
[[nodiscard]] MatchedCollectives match_collectives(const Trace& trace);

}  // namespace weft
