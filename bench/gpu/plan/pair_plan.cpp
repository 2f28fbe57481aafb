#include "bench/gpu/plan/pair_plan.h"

#include <algorithm>
#include <cmath>

namespace weft::gpu_probe {
namespace {

// Events resolve half a microsecond.
constexpr double kShortestTimingUs = 60;
constexpr int kMostLaunches = 32;
// Start and end of an aggressor, snapshots and the host's waits.
constexpr double kRoundMs = 1.0;
// A victim beside an aggressor, on average: for the plan only.
constexpr double kBeside = 1.5;
// Allocation, random numbers, the choice of algorithms, warm-up.
constexpr double kVictimSetupSeconds = 0.4;
constexpr double kStartSeconds = 10;

bool found(const std::optional<std::regex>& pattern, const std::string& name) {
  return !pattern || std::regex_search(name, *pattern);
}

void add(std::vector<VictimPlan>& plan, const Victim& victim, const std::vector<Aggressor>& aggressors,
         const Selection& selection) {
  VictimPlan one{&victim, {}};
  for (const Aggressor& aggressor : aggressors) {
    if (selection.takes(aggressor)) one.aggressors.push_back(&aggressor);
  }
  if (!one.aggressors.empty()) plan.push_back(std::move(one));
}

}  // namespace

bool Selection::takes(const Victim& one) const { return found(victim, one.name); }
bool Selection::takes(const Aggressor& one) const { return found(aggressor, one.name); }

std::vector<VictimPlan> plan_pairs(const Selection& selection) {
  std::vector<VictimPlan> plan;
  for (const Victim& victim : victims()) {
    if (selection.takes(victim)) add(plan, victim, core_aggressors(), selection);
  }
  for (const Victim& victim : victims()) {
    if (victim.surface && selection.takes(victim)) add(plan, victim, surface_aggressors(), selection);
  }
  return plan;
}

Repetitions repetitions(double alone_us, double pair_ms) {
  Repetitions r;
  const double one_us = std::max(alone_us, 0.5);
  r.launches = static_cast<int>(std::clamp(std::ceil(kShortestTimingUs / one_us), 1.0, double{kMostLaunches}));
  const double timing_ms = one_us * r.launches / 1000;
  const double timings = (pair_ms - r.rounds * kRoundMs) / (timing_ms * (1 + kBeside));
  r.per_round = static_cast<int>(std::clamp(std::floor(timings / r.rounds), 2.0, 25.0));
  return r;
}

double estimated_s(const std::vector<VictimPlan>& plan, double pair_ms) {
  double seconds = plan.empty() ? 0 : kStartSeconds;
  for (const VictimPlan& one : plan) {
    const double alone_us = estimated_us(*one.victim);
    const Repetitions r = repetitions(alone_us, pair_ms);
    const double timings_ms = r.rounds * r.per_round * r.launches * alone_us / 1000 * (1 + kBeside);
    seconds +=
        kVictimSetupSeconds + static_cast<double>(one.aggressors.size()) * (timings_ms + r.rounds * kRoundMs) / 1000;
  }
  return seconds;
}

}  // namespace weft::gpu_probe
