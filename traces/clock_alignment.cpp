#include "traces/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/error.h"
#include "traces/matched_collectives.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerNs = 1'000'000;

void move(TraceRank& rank, Time by) {
  for (TraceOp& op : rank.ops) {
    op.issued += by;
    op.start += by;
  }
  for (TraceIteration& iteration : rank.iterations) {
    iteration.start += by;
    iteration.end += by;
  }
  for (Time& start : rank.traffic.start) start += by;
}

Time earliest(const TraceRank& rank) {
  Time time(std::numeric_limits<std::int64_t>::max());
  for (const TraceOp& op : rank.ops) time = std::min({time, op.issued, op.start});
  for (const TraceIteration& iteration : rank.iterations) time = std::min(time, iteration.start);
  if (rank.traffic.size() > 0) time = std::min(time, rank.traffic.start.front());
  return time;
}

Time latest(const TraceRank& rank) {
  Time time;
  for (const TraceOp& op : rank.ops) time = std::max({time, op.issued, op.start + op.duration});
  for (const TraceIteration& iteration : rank.iterations) time = std::max(time, iteration.end);
  if (rank.traffic.size() > 0) time = std::max(time, rank.traffic.start.back() + rank.traffic.duration.back());
  return time;
}

Time middle(std::vector<Time>& times) {
  const auto half = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), half, times.end());
  return *half;
}

// Ranks that meet, and how much later than its first member's each of their collectives ended, by member.
struct Meeting {
  std::vector<std::size_t> ranks;
  std::vector<std::vector<Time>> later;
};

// Those of the most ranks first: they join most clocks at once, in the fewest steps.
std::vector<Meeting> meetings(const Trace& trace) {
  std::map<std::vector<std::size_t>, std::vector<std::vector<Time>>> found;
  for (const MatchedCollective& collective : match_collectives(trace).matched) {
    if (!ends_at_once(collective.kind)) continue;
    std::vector<std::size_t> ranks;
    std::vector<Time> ends;
    for (const MatchedCollective::Member& member : collective.members) {
      const TraceOp& op = trace.ranks[member.rank].ops[member.op];
      ranks.push_back(member.rank);
      ends.push_back(op.start + op.duration);
    }
    std::vector<std::vector<Time>>& later = found[ranks];
    later.resize(ranks.size());
    for (std::size_t m = 0; m < ends.size(); ++m) later[m].push_back(ends[m] - ends[0]);
  }
  std::vector<Meeting> list;
  list.reserve(found.size());
  for (auto& [ranks, later] : found) list.push_back({ranks, std::move(later)});
  std::stable_sort(list.begin(), list.end(),
                   [](const Meeting& a, const Meeting& b) { return a.ranks.size() > b.ranks.size(); });
  return list;
}

// How much later each rank's clock is than the first's of those that it meets, directly or by way of others.
std::vector<std::optional<Time>> clocks(std::vector<Meeting>& list, std::size_t ranks) {
  std::vector<std::optional<Time>> clock(ranks);
  std::vector<std::vector<Time>> offsets(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::vector<Time>& later : list[i].later) offsets[i].push_back(middle(later));
  const auto place = [&](std::size_t i, std::size_t anchor) {
    for (std::size_t m = 0; m < list[i].ranks.size(); ++m) {
      std::optional<Time>& c = clock[list[i].ranks[m]];
      if (!c) c = *clock[list[i].ranks[anchor]] + offsets[i][m] - offsets[i][anchor];
    }
  };
  std::vector<bool> used(list.size());
  for (std::size_t left = list.size(); left > 0; --left) {
    std::optional<std::pair<std::size_t, std::size_t>> next;  // a meeting, and a member whose clock is known
    for (std::size_t i = 0; i < list.size() && !next; ++i)
      for (std::size_t m = 0; m < list[i].ranks.size() && !next && !used[i]; ++m)
        if (clock[list[i].ranks[m]]) next = {i, m};
    if (!next) {
      next = {static_cast<std::size_t>(std::find(used.begin(), used.end(), false) - used.begin()), 0};
      clock[list[next->first].ranks[0]] = Time();
    }
    used[next->first] = true;
    place(next->first, next->second);
  }
  return clock;
}

}  // namespace

bool can_shift(const TraceRank& rank, std::int64_t ns) {
  return ns <= (std::numeric_limits<std::int64_t>::max() - latest(rank).count()) / kFsPerNs;
}

void shift_times(TraceRank& rank, std::int64_t ns, const std::string& file) {
  if (!can_shift(rank, ns))
    throw InputError(file, "",
                     "expected ranks that lie within 2.5 hours, got one that begins " +
                         std::to_string(ns / 1'000'000'000) + " s after the first");
  move(rank, Time(ns * kFsPerNs));
}

ClockAlignment align_clocks(Trace& trace, std::vector<std::string>& notes, Time tolerance) {
  ClockAlignment alignment;
  std::vector<Meeting> list = meetings(trace);
  alignment.earlier.resize(trace.ranks.size());
  if (list.empty()) return alignment;
  const std::vector<std::optional<Time>> clock = clocks(list, trace.ranks.size());
  for (std::size_t r = 0; r < clock.size(); ++r) alignment.earlier[r] = clock[r].value_or(Time());
  std::vector<Time> offsets = alignment.earlier;
  const Time centre = middle(offsets);
  Time first(std::numeric_limits<std::int64_t>::max());
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    Time& by = alignment.earlier[r];
    by -= centre;
    alignment.most = std::max(alignment.most, by < Time() ? Time() - by : by);
    first = std::min(first, earliest(trace.ranks[r]) - by);
  }
  const bool fits = std::ranges::all_of(trace.ranks, [&](const TraceRank& rank) {
    const auto r = static_cast<std::size_t>(&rank - trace.ranks.data());
    std::int64_t by = 0, end = 0;
    return !__builtin_add_overflow(alignment.earlier[r].count(), first.count(), &by) &&
           !__builtin_sub_overflow(latest(rank).count(), by, &end);
  });
  alignment.moved = fits && alignment.most >= tolerance;
  if (!alignment.moved) return alignment;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    trace.ranks[r].clock_moved = Time() - alignment.earlier[r];
    move(trace.ranks[r], trace.ranks[r].clock_moved - first);
  }
  notes.push_back(fmt::format("clocks of ranks were moved by up to {:.1f} us, so that collectives end together",
                              to_microseconds(alignment.most)));
  return alignment;
}

}  // namespace weft
