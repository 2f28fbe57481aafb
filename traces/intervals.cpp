#include "traces/intervals.h"

#include <algorithm>

namespace weft {

std::vector<Interval> union_of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> out;
  for (const Interval& i : intervals) {
    if (i.end <= i.start) continue;
    if (!out.empty() && i.start <= out.back().end)
      out.back().end = std::max(out.back().end, i.end);
    else
      out.push_back(i);
  }
  return out;
}

Time length(const std::vector<Interval>& disjoint) {
  Time total;
  for (const Interval& i : disjoint) total += i.end - i.start;
  return total;
}

Time overlap(const Interval& interval, const std::vector<Interval>& disjoint) {
  Time total;
  auto at = std::partition_point(disjoint.begin(), disjoint.end(),
                                 [&](const Interval& i) { return i.end <= interval.start; });
  for (; at != disjoint.end() && at->start < interval.end; ++at)
    total += std::min(at->end, interval.end) - std::max(at->start, interval.start);
  return total;
}

Time overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Time total;
  for (const Interval& i : a) total += overlap(i, b);
  return total;
}

}  // namespace weft
