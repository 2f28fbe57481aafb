#include "cli/sampled/steady_turns.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gpu_model/wave_skip.h"

namespace weft {

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
  // Who waits stands at the beginning of a phase.
  if (most - least > 2 * WaveSkip::kSettled * mean + 2.0 / shortest) return std::nullopt;
  const double turn = window / mean;
  const CollectiveSteps& before = from[rear].at;
  const CollectiveSteps& after = to[rear].at;
  const std::uint32_t phases = after.phase - before.phase;
  if (!alike || phases == 0 || (!repeats[rear].even && phases % repeats[rear].period != 0)) return turn;
  // From entry to entry, or by how far it is within its phases: one may have a beginning in it, the other is not exact.
  const double passed = (after.phases - before.phases) / repeats[rear].period;
  const double its_turn =
      std::min(to_seconds(after.entered - before.entered) * repeats[rear].period / phases, turn * mean / passed);
  return its_turn > (1 + 2 * WaveSkip::kSettled) * turn ? its_turn : turn;
}

}  // namespace weft
