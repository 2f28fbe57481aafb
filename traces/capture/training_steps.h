// Iterations that nothing names, by the phases that a program marks.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/kineto_events.h"

namespace weft {

struct TrainingStep {
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
};

// A range that names a phase, within no other.
struct MarkedPhase {
  TrainingPhase kind;
  TrainingStep span;
};

// Of one thread's annotations, in any order: ascending, and they do not overlap.
[[nodiscard]] std::vector<MarkedPhase> outermost_phases(std::vector<const KinetoEvent*> annotations);

// `phases`: annotations of one thread whose names tell a phase (named_phase), in any order. A step ends with the
// optimizer, where that is marked, else with backward; of passes that are only forward each is one. Empty where the
// phases do not tell where steps begin.
[[nodiscard]] std::vector<TrainingStep> steps_by_phases(std::vector<const KinetoEvent*> phases);

}  // namespace weft
