#include "cli/sampled/gpus_apart.h"

#include <algorithm>
#include <cstdlib>

namespace weft {

namespace {
// GPUs that begin so close to how they began before do the same: half of the time between two kernels. And so many
// beginnings of one stretch are simulated. Choices: who comes first decides what follows, and that scatters.
constexpr SubCycle kClose = cycles(std::int64_t{700});
constexpr std::size_t kMostBeginnings = 4;

SubCycle difference(const std::vector<SubCycle>& a, const std::vector<SubCycle>& b) {
  SubCycle most = 0;
  for (std::size_t g = 0; g < std::max(a.size(), b.size()); ++g) {
    most = std::max(most, std::abs((a.empty() ? 0 : a[g]) - (b.empty() ? 0 : b[g])));
  }
  return most;
}
}  // namespace

const std::vector<SubCycle>& KnownBeginnings::like(const std::string& stretch, const std::vector<SubCycle>& apart) {
  std::deque<std::vector<SubCycle>>& known = known_[stretch];
  const auto nearest = std::ranges::min_element(known, {}, [&](const auto& one) { return difference(one, apart); });
  const bool close = nearest != known.end() && difference(*nearest, apart) <= kClose;
  if (!close && known.size() < kMostBeginnings) return known.emplace_back(apart);
  return *nearest;
}

std::vector<SubCycle> apart_after(const Machine& machine, const Regime& regime, std::uint32_t first) {
  std::vector<SubCycle> ends(machine.gpus(), 0);
  SubCycle sum = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const std::vector<OpTimes>& times = machine.gpu(g).times();
    for (std::size_t i = 0; i < regime.operations.size(); ++i) {
      if (regime.operations[i].duration >= 0) ends[g] = std::max(ends[g], times[first + i].end);
    }
    sum += ends[g];
  }
  const SubCycle mean = sum / static_cast<SubCycle>(machine.gpus());
  for (SubCycle& end : ends) end -= mean;
  return ends;
}

SubCycle first_of(const std::vector<SubCycle>& apart) { return apart.empty() ? 0 : std::ranges::min(apart); }
SubCycle last_of(const std::vector<SubCycle>& apart) { return apart.empty() ? 0 : std::ranges::max(apart); }

std::vector<HostState> states_of(const HostState& state, const std::vector<SubCycle>& apart) {
  const SubCycle first = first_of(apart);
  std::vector<HostState> states;
  for (const SubCycle own : apart) {
    const SubCycle there = own - first;
    HostState& later = states.emplace_back(state);
    for (SubCycle& arrival : later.arrivals) arrival = arrival == 0 ? there : std::max(there, arrival - first);
    if (later.next_step) *later.next_step = std::max(there, *later.next_step - first);
  }
  return states;
}

}  // namespace weft
