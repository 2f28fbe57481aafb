#include "cli/sampled/steady_turns.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gpu_model/wave_skip.h"

namespace weft {

namespace {

// How far apart groups may seem to go in a window though they go together, in phases of those that have the fewest: who
// waits stands at the beginning of a phase. Who has many phases to one of others' goes through them in bursts, but at
// the ends of windows, which hold whole ones of those, is equally far in them.
constexpr double kApart = 2;
constexpr double kApartInBursts = 0.25;

// Of the groups of warps that have the fewest phases in a turn, from the beginning of one to that of another.
std::optional<double> turn_of_fewest(std::span<const SteppingWarps> from, std::span<const SteppingWarps> to,
                                     std::uint32_t fewest, const std::vector<PhaseRepeats>& repeats) {
  double sum = 0;
  std::size_t groups = 0;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i].period != fewest) continue;
    const std::uint32_t phases = to[i].at.phase - from[i].at.phase;
    if (phases == 0) return std::nullopt;
    sum += to_seconds(to[i].at.entered - from[i].at.entered) * fewest / phases;
    ++groups;
  }
  return sum / static_cast<double>(groups);
}

}  // namespace

std::optional<double> turn_between(std::span<const SteppingWarps> from, std::span<const SteppingWarps> to,
                                   double window, const std::vector<PhaseRepeats>& repeats) {
  double least = std::numeric_limits<double>::max();
  double most = 0;
  double sum = 0;
  std::uint32_t shortest = kLongestTurn;
  std::size_t rear = 0;
  bool alike = true;
  const PhaseRepeats& first = repeats.front();
  const auto place = [&](std::size_t i) { return from[i].at.phases / repeats[i].period; };
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (place(i) < place(rear)) rear = i;
    alike = alike && repeats[i].remote_lines * first.period == first.remote_lines * repeats[i].period;
    const double turns = (to[i].at.phases - from[i].at.phases) / repeats[i].period;
    least = std::min(least, turns);
    most = std::max(most, turns);
    sum += turns;
    shortest = std::min(shortest, repeats[i].period);
  }
  const double mean = sum / static_cast<double>(repeats.size());
  const bool unlike = std::ranges::any_of(repeats, [&](const PhaseRepeats& r) { return r.period != shortest; });
  const double apart = unlike ? kApartInBursts : kApart;
  if (most - least > 2 * WaveSkip::kSettled * mean + apart / shortest) return std::nullopt;
  if (unlike) return turn_of_fewest(from, to, shortest, repeats);
  const double turn = window / mean;
  const CollectiveSteps& before = from[rear].at;
  const CollectiveSteps& after = to[rear].at;
  const std::uint32_t phases = after.phase - before.phase;
  if (!alike || phases == 0 || (!repeats[rear].even && phases % repeats[rear].period != 0)) return turn;
  // From entry to entry, or by how far it is within its phases: one may have a beginning in it, the other is not exact.
  const double passed = (after.phases - before.phases) / repeats[rear].period;
  const double its_turn =
      std::min(to_seconds(after.entered - before.entered) * repeats[rear].period / phases, turn * mean / passed);
  return std::max(its_turn, turn);
}

}  // namespace weft
