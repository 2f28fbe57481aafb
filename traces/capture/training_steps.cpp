#include "traces/capture/training_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "traces/kineto_names.h"

namespace weft {

std::vector<MarkedPhase> outermost_phases(std::vector<const KinetoEvent*> annotations) {
  std::sort(annotations.begin(), annotations.end(), [](const KinetoEvent* a, const KinetoEvent* b) {
    return a->start != b->start ? a->start < b->start : a->duration > b->duration;
  });
  std::vector<MarkedPhase> phases;
  for (const KinetoEvent* event : annotations) {
    const std::optional<TrainingPhase> kind = named_phase(event->name);
    if (kind && (phases.empty() || event->start >= phases.back().span.end))
      phases.push_back({*kind, {event->start, event->end()}});
  }
  return phases;
}

std::vector<TrainingStep> steps_by_phases(std::vector<const KinetoEvent*> phases) {
  const std::vector<MarkedPhase> marked = outermost_phases(std::move(phases));
  const auto any = [&](TrainingPhase kind) {
    return std::any_of(marked.begin(), marked.end(), [&](const MarkedPhase& phase) { return phase.kind == kind; });
  };
  std::optional<TrainingPhase> last;
  for (const TrainingPhase kind : {TrainingPhase::optimizer, TrainingPhase::backward})
    if (!last && any(kind)) last = kind;
  const auto ends_step = [&](const MarkedPhase& phase) { return !last || phase.kind == *last; };
  if (last && std::all_of(marked.begin(), marked.end(), ends_step)) return {};
  std::vector<TrainingStep> steps;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    const bool begins = i == 0 || !last || (ends_step(marked[i - 1]) && !ends_step(marked[i]));
    if (begins) steps.push_back(marked[i].span);
    steps.back().end = marked[i].span.end;
  }
  return steps;
}

}  // namespace weft
