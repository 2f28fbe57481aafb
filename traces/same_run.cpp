#include "traces/same_run.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "traces/launch_position.h"
#include "traces/matched_collectives.h"

namespace weft {

std::string against_one_run(const Trace& trace, Time together) {
  std::vector<std::vector<Time>> spreads(trace.ranks.size());
  std::vector<std::size_t> joined(trace.ranks.size());  // by rank, a forest
  std::iota(joined.begin(), joined.end(), std::size_t{0});
  const auto root = [&](std::size_t r) {
    while (joined[r] != r) r = joined[r] = joined[joined[r]];
    return r;
  };
  for (const MatchedCollective& collective : match_collectives(trace).matched) {
    if (!ends_at_once(collective.kind)) continue;
    for (const MatchedCollective::Member& member : collective.members) {
      spreads[member.rank].push_back(collective.end_spread);
      joined[root(member.rank)] = root(collective.members.front().rank);
    }
  }
  for (std::size_t r = 0; r < spreads.size(); ++r) {
    const std::uint32_t rank = trace.ranks[r].rank;
    if (spreads[r].size() < 2)
      return fmt::format("{} collectives of rank {} that end together with others", spreads[r].size(), rank);
    if (root(r) != root(0))
      return fmt::format("no collectives that join ranks {} and {}", trace.ranks.front().rank, rank);
    const Time apart = median(spreads[r]);
    if (apart > together)
      return fmt::format("collectives of rank {} that end {:.0f} us apart", rank, to_microseconds(apart));
  }
  return "";
}

}  // namespace weft
