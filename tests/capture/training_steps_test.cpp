#include "traces/capture/training_steps.h"

#include <gmock/gmock.h>

#include <deque>
#include <string_view>
#include <utility>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Ranges of 8 ns every 10 ns.
std::vector<std::pair<std::int64_t, std::int64_t>> steps(const std::vector<std::string_view>& names) {
  std::deque<KinetoEvent> events;
  std::vector<const KinetoEvent*> phases;
  for (const std::string_view name : names) {
    KinetoEvent& event = events.emplace_back();
    event.name = name;
    event.start = 10 * static_cast<std::int64_t>(events.size());
    event.duration = 8;
    phases.push_back(&event);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const TrainingStep& step : steps_by_phases(phases)) out.emplace_back(step.start, step.end);
  return out;
}

TEST(TrainingSteps, EndWithTheOptimizer) {
  EXPECT_THAT(steps({"forward", "backward", "optimizer", "forward", "backward", "optimizer"}),
              ElementsAre(Pair(10, 38), Pair(40, 68)));
}

TEST(TrainingSteps, HoldAllPassesWhoseGradientsAreAdded) {
  EXPECT_THAT(steps({"forward", "backward", "forward", "backward", "optimizer", "Optimizer.zero_grad", "forward"}),
              ElementsAre(Pair(10, 68), Pair(70, 78)));
}

TEST(TrainingSteps, EndWithBackwardWhereNoOptimizerIsMarked) {
  EXPECT_THAT(steps({"backward", "forward", "backward", "forward"}),
              ElementsAre(Pair(10, 18), Pair(20, 38), Pair(40, 48)));
}

TEST(TrainingSteps, ArePassesWhereAllAreForward) {
  EXPECT_THAT(steps({"forward", "forward"}), ElementsAre(Pair(10, 18), Pair(20, 28)));
}

TEST(TrainingSteps, AreNotKnownWhereOnlyTheirEndsAreMarked) {
  EXPECT_THAT(steps({"optimizer", "optimizer"}), IsEmpty());
  EXPECT_THAT(steps({}), IsEmpty());
}

TEST(TrainingSteps, AreNotEndedByPhasesWithinPhases) {
  KinetoEvent outer, inner, next;
  outer.name = next.name = "forward";
  outer.duration = 100;
  inner.name = "backward of something";
  inner.start = 10;
  inner.duration = 5;
  next.start = 200;
  EXPECT_EQ(steps_by_phases({&next, &inner, &outer}).size(), 2u);
}

}  // namespace
}  // namespace weft
