#include "gpu_model/phase_repeats.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_model/phase_lines.h"

namespace weft {
namespace {

// Receives a piece, passes it on into one of `slots` places and says so; flags count pieces.
Phase step(std::uint32_t piece, std::uint32_t slots, std::int64_t bytes) {
  Phase phase;
  phase.wait({.flag = piece % slots, .value = piece / slots + 1});
  phase.load(lines(piece * bytes, bytes));
  phase.store(lines(piece % slots * bytes, bytes, Target::remote, 1));
  phase.post({.flag = 10 + piece % slots, .target = Target::remote, .gpu = 1});
  set_rounds(phase, 8, 2);
  return phase;
}

std::unique_ptr<PhaseCursor> cursor_of(std::vector<Phase> phases) {
  static std::vector<std::unique_ptr<WrittenPrograms>> kept;  // they outlive their cursors
  std::vector<std::vector<WarpScript>> blocks{{WarpScript{std::move(phases), 64}}};
  kept.push_back(std::make_unique<WrittenPrograms>(std::move(blocks)));
  return kept.back()->start(0, 0);
}

std::vector<Phase> steps(std::uint32_t count, std::uint32_t slots) {
  std::vector<Phase> phases;
  for (std::uint32_t i = 0; i < count; ++i) phases.push_back(step(i, slots, 4096));
  return phases;
}

PhaseRepeats of(const std::vector<Phase>& phases, Turn turn = Turn::loop, std::uint64_t most = 1000) {
  const std::unique_ptr<PhaseCursor> cursor = cursor_of(phases);
  Phase now;
  EXPECT_TRUE(cursor->next(now));
  return find_repeats(now, *cursor, turn, most);
}

TEST(PhaseRepeats, ATurnEndsWhereTheFlagsAreTheSameAgain) {
  const PhaseRepeats one = of(steps(301, 1));
  EXPECT_EQ(one.period, 1);
  EXPECT_EQ(one.turns, 300);
  const PhaseRepeats four = of(steps(301, 4));
  EXPECT_EQ(four.period, 4);
  EXPECT_EQ(four.turns, 75);
  EXPECT_EQ(four.remote_lines, 4 * 32);
  ASSERT_EQ(four.counts.size(), 4);
  for (const PhaseRepeats::Count& count : four.counts) EXPECT_EQ(count.by, 1);
  ASSERT_EQ(four.waits.size(), 4);
  for (const PhaseRepeats::Wait& wait : four.waits) EXPECT_EQ(wait.by, 1);
}

TEST(PhaseRepeats, EndsBeforeAPhaseThatIsUnlikeTheOthers) {
  std::vector<Phase> phases = steps(301, 1);
  phases[200] = step(200, 1, 8192);
  EXPECT_EQ(of(phases).turns, 199);
  phases[9] = step(9, 1, 8192);  // among the first that are looked at
  EXPECT_EQ(of(phases).turns, 8);
  phases[1] = step(1, 1, 8192);
  phases[2] = step(2, 1, 12288);
  EXPECT_LE(of(phases).turns, 1);
}

TEST(PhaseRepeats, SaysWhetherThePhasesOfATurnMoveTheSame) {
  EXPECT_TRUE(of(steps(301, 4)).even);
  std::vector<Phase> phases = steps(301, 1);
  for (std::uint32_t i = 1; i < 301; i += 2) phases[i] = step(i, 1, 8192);
  const PhaseRepeats found = of(phases);
  EXPECT_EQ(found.period, 2);
  EXPECT_FALSE(found.even);
}

// As in a ring, whose steps sum at first and then pass on.
TEST(PhaseRepeats, ATurnIsALoopOrAStepOfARunInIt) {
  std::vector<Phase> phases = steps(301, 1);
  for (std::uint32_t i = 0; i < 301; ++i) phases[i] = step(i, 1, i % 12 < 7 ? 4096 : 8192);
  const PhaseRepeats loop = of(phases);
  EXPECT_EQ(loop.period, 12);
  EXPECT_EQ(loop.turns, 25);
  const PhaseRepeats run = of(phases, Turn::step);
  EXPECT_EQ(run.period, 1);
  EXPECT_EQ(run.turns, 6);                                                  // behind the one that is under way
  EXPECT_EQ(of({phases.begin() + 6, phases.end()}, Turn::step).period, 0);  // the last of its run
  EXPECT_EQ(of({phases.begin() + 7, phases.end()}, Turn::step).turns, 4);
}

// By that it is known again, whether a group of warps did the same before.
TEST(PhaseRepeats, TellsWhatItsPhasesDo) {
  const std::vector<Phase> phases = steps(301, 4);
  const PhaseRepeats found = of(phases);
  ASSERT_EQ(found.works.size(), 4);  // each posts to another flag
  for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(std::ranges::binary_search(found.works, work_of(phases[i])));
  EXPECT_FALSE(std::ranges::binary_search(found.works, work_of(step(0, 4, 8192))));
}

TEST(PhaseRepeats, ThePhaseThatIsUnderWayMustBeOfThem) {
  std::vector<Phase> phases = steps(301, 1);
  phases[0] = step(0, 1, 8192);
  EXPECT_EQ(of(phases).period, 0);
}

TEST(PhaseRepeats, GoesOnBehindTheTurnsThatWereAskedFor) {
  const PhaseRepeats found = of(steps(301, 1), Turn::loop, 250);
  EXPECT_EQ(found.turns, 250);
  ASSERT_NE(found.cursor, nullptr);
  EXPECT_EQ(found.phase.waits[0].value, 251);
  Phase next;
  ASSERT_TRUE(found.cursor->next(next));
  EXPECT_EQ(next.waits[0].value, 252);
}

TEST(PhaseRepeats, FlagsInsideTheDataCountLines) {
  std::vector<Phase> phases;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Phase& phase = phases.emplace_back();
    LineStream load = lines(i * 4096, 4096);
    load.arrival_flag = 3;
    load.arrived_before = i * load.lines;
    phase.load(load);
    LineStream store = lines(0, 4096, Target::remote, 1);
    store.arrival_flag = 4;
    phase.store(store);
  }
  const PhaseRepeats found = of(phases);
  EXPECT_EQ(found.period, 1);
  ASSERT_EQ(found.waits.size(), 1);
  EXPECT_EQ(found.waits[0].by, 32);
  ASSERT_EQ(found.counts.size(), 1);
  EXPECT_EQ(found.counts[0].by, 32);
}

TEST(PhaseRepeats, SumsOfRoutersAndLaunchesAreNotLeftOut) {
  std::vector<Phase> sums = steps(200, 1);
  for (Phase& phase : sums) phase.stores[0].target = Target::tree;
  EXPECT_EQ(of(sums).period, 0);
  std::vector<Phase> launches = steps(200, 1);
  for (Phase& phase : launches) phase.posts[0].target = Target::launch;
  EXPECT_EQ(of(launches).period, 0);
}

}  // namespace
}  // namespace weft
