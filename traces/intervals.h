// Sets of time as sorted, disjoint intervals.
#pragma once

#include <vector>

#include "sim/units.h"

namespace weft {

struct Interval {
  Time start;
  Time end;
};

// The union, sorted and disjoint; empty intervals vanish.
[[nodiscard]] std::vector<Interval> union_of(std::vector<Interval> intervals);
// The whole length of disjoint intervals.
[[nodiscard]] Time length(const std::vector<Interval>& disjoint);
// How much of `interval` lies in `disjoint`.
[[nodiscard]] Time overlap(const Interval& interval, const std::vector<Interval>& disjoint);
[[nodiscard]] Time overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);

}  // namespace weft
