#include "traces/capture/repeated_launches.h"

#include <algorithm>
#include <map>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kLeastTimes = 3;
constexpr std::size_t kLeastPeriod = 16;  // less is an operator in a loop
// A layer's launches repeat within a step's, but cover fewer of all.
constexpr std::size_t kMostPeriods = 16;

// Distances between a kernel and its next launch, those first that cover most launches of one kernel.
std::vector<std::size_t> likely_periods(const std::vector<std::uint32_t>& launches) {
  std::map<std::uint32_t, std::size_t> last;
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> often;  // distance and kernel
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const auto [before, first] = last.try_emplace(launches[i], i);
    if (!first && i - before->second >= kLeastPeriod) ++often[{i - before->second, launches[i]}];
    before->second = i;
  }
  std::map<std::size_t, std::size_t> covered;
  for (const auto& [of, times] : often) covered[of.first] = std::max(covered[of.first], of.first * times);
  std::vector<std::pair<std::size_t, std::size_t>> by_cover;
  for (const auto& [distance, launches_covered] : covered) by_cover.emplace_back(launches_covered, distance);
  std::sort(by_cover.rbegin(), by_cover.rend());
  std::vector<std::size_t> periods;
  for (const auto& [launches_covered, distance] : by_cover)
    if (periods.size() < kMostPeriods) periods.push_back(distance);
  return periods;
}

struct Stretch {
  std::size_t first = 0, length = 0, period = 0;
  [[nodiscard]] std::size_t times() const { return length / period; }
};

// The longest in which each launch is that of a period before.
Stretch longest(const std::vector<std::uint32_t>& launches, std::size_t period) {
  std::size_t end = period, length = 0, run = 0;
  for (std::size_t i = period; i < launches.size(); ++i) {
    run = launches[i] == launches[i - period] ? run + 1 : 0;
    if (run <= length) continue;
    length = run;
    end = i + 1;
  }
  return {end - length - period, length + period, period};
}

// A stretch may begin within an iteration, whose end another one shares. One long pause says nothing, so the shortest
// of all counts.
Repetition begun_after_pause(const Stretch& stretch, const std::vector<std::int64_t>& pauses) {
  std::pair<std::int64_t, std::size_t> best{-1, 0};
  for (std::size_t shift = 0; shift < stretch.period; ++shift) {
    std::int64_t shortest = pauses[stretch.first + shift + stretch.period];
    for (std::size_t k = 2; k < stretch.times(); ++k)
      shortest = std::min(shortest, pauses[stretch.first + shift + k * stretch.period]);
    if (shortest > best.first) best = {shortest, shift};
  }
  return {stretch.first + best.second, stretch.period, (stretch.length - best.second) / stretch.period};
}

}  // namespace

std::optional<Repetition> repeated_launches(const std::vector<std::uint32_t>& launches,
                                            const std::vector<std::int64_t>& pauses) {
  std::optional<Stretch> most;
  for (const std::size_t period : likely_periods(launches)) {
    const Stretch found = longest(launches, period);
    if (found.times() < kLeastTimes || found.length * 4 < launches.size()) continue;
    if (!most || found.length > most->length || (found.length == most->length && period < most->period)) most = found;
  }
  if (!most) return std::nullopt;
  return begun_after_pause(*most, pauses);
}

}  // namespace weft
