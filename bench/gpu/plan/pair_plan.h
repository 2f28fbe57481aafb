// Which aggressors run beside which victims, and how often each is repeated.
#pragma once

#include <optional>
#include <regex>
#include <vector>

#include "bench/gpu/plan/aggressors.h"
#include "bench/gpu/plan/victims.h"

namespace weft::gpu_probe {

// Absent: all. A pattern must match somewhere in the name.
struct Selection {
  std::optional<std::regex> victim, aggressor;
  [[nodiscard]] bool takes(const Victim& one) const;
  [[nodiscard]] bool takes(const Aggressor& one) const;
};

struct VictimPlan {
  const Victim* victim = nullptr;
  std::vector<const Aggressor*> aggressors;
};

// Every victim once with the core set; then, so that a short budget leaves nobody out, those of the surface again.
[[nodiscard]] std::vector<VictimPlan> plan_pairs(const Selection& selection);

// A victim is timed `per_round` times alone, then as often beside the aggressor, for `rounds` rounds: clocks and
// temperature are alike. One timing is `launches` of the victim in a row, so that it is not too short for an event.
struct Repetitions {
  int launches = 1, rounds = 4, per_round = 2;
};
[[nodiscard]] Repetitions repetitions(double alone_us, double pair_ms);

// Expected, on a Hopper GPU.
[[nodiscard]] double estimated_s(const std::vector<VictimPlan>& plan, double pair_ms);

}  // namespace weft::gpu_probe
