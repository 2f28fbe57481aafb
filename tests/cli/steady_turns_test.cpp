// At what pace collectives go on whose ranks are not equally fast.
#include "cli/sampled/steady_turns.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr double kWindow = 80e-6;
constexpr std::uint32_t kGroups = 16;

// Where a group was after `seconds` that makes a phase in each `phase` of them.
SteppingWarps at(std::uint32_t group, double seconds, double phase, double ahead = 0) {
  const double phases = ahead + seconds / phase;
  const auto whole = static_cast<std::uint32_t>(phases);
  const double entered = (whole - ahead) * phase;
  return {group, {group, phases, whole, nanoseconds(entered * 1e9)}};
}

struct Window {
  std::vector<SteppingWarps> from, to;
  std::vector<PhaseRepeats> repeats;
  [[nodiscard]] std::optional<SteadyTurn> steady() const { return turn_between(from, to, kWindow, repeats); }
  [[nodiscard]] std::optional<double> turn() const {
    const std::optional<SteadyTurn> found = steady();
    return found && found->leads.empty() ? std::optional(found->seconds) : std::nullopt;
  }
};

// All but the last group make a phase in 8 us, the last one, which is some behind, in `last`.
Window window(double last, std::uint32_t period = 1) {
  Window found;
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    const bool is_last = g + 1 == kGroups;
    const double phase = is_last ? last : 8e-6;
    for (auto* mark : {&found.from, &found.to}) {
      const double seconds = 160e-6 + (mark == &found.to ? kWindow : 0);
      mark->push_back(at(g, seconds, phase, is_last ? 0 : 6));
    }
    PhaseRepeats repeats;
    repeats.period = period;
    repeats.remote_lines = 64 * period;
    found.repeats.push_back(std::move(repeats));
  }
  return found;
}

TEST(SteadyTurns, GroupsThatAreAsFastGoOnAtTheirPace) { EXPECT_NEAR(*window(8e-6).turn(), 8e-6, 1e-9); }

// They wait for it in the end.
TEST(SteadyTurns, AllGoAtThePaceOfOneThatIsBehindAndSlower) {
  EXPECT_NEAR(*window(10e-6).turn(), 10e-6, 1e-9);
  EXPECT_NEAR(*window(10e-6, 2).turn(), 20e-6, 1e-9);
  EXPECT_NEAR(*window(8.3e-6).turn(), 8.3e-6, 1e-9);
}

// Behind who is held up all is full; of different things, others may be waited for by nobody.
TEST(SteadyTurns, OneMayBeHeldUpALot) {
  Window held = window(12e-6);
  EXPECT_NEAR(*held.turn(), 12e-6, 1e-9);
  for (std::uint32_t g = 0; g < kGroups / 2; ++g) held.repeats[g].remote_lines = 0;
  EXPECT_FALSE(held.steady());
}

TEST(SteadyTurns, OneThatIsBehindAndFasterCatchesUp) { EXPECT_NEAR(*window(7.4e-6).turn(), 8e-6, 0.05e-6); }

// Those that fill slots for others are ahead by that, and are not the same as they are.
TEST(SteadyTurns, OfDifferentThingsItIsTheMean) {
  Window of_two = window(10e-6);
  for (std::uint32_t g = 0; g < kGroups / 2; ++g) of_two.repeats[g].remote_lines = 0;
  EXPECT_NEAR(*of_two.turn(), 8e-6, 0.15e-6);
}

// 8 phases in this window are no whole turns of three, of which one may be longer than the others.
TEST(SteadyTurns, PartsOfUnevenTurnsTellNothing) {
  Window uneven = window(10e-6, 3);
  EXPECT_NEAR(*uneven.turn(), 30e-6, 1e-9);
  for (PhaseRepeats& repeats : uneven.repeats) repeats.even = false;
  EXPECT_NEAR(*uneven.turn(), 24e-6, 0.5e-6);
}

// The phase that it was in began long before the window.
TEST(SteadyTurns, WhatWasBeforeTheWindowDoesNotCount) {
  Window began = window(8e-6);
  began.from.back().at.entered -= nanoseconds(30e3);
  EXPECT_NEAR(*began.turn(), 8e-6, 0.05e-6);
}

// Those that hand over pieces, eight for each phase of the others, and so many phases of these a second.
Window of_pieces(double pieces, double others) {
  Window found;
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    const bool is_piece = g % 2 == 0;
    const double phase = is_piece ? 1 / pieces : 1 / others;
    for (auto* mark : {&found.from, &found.to}) {
      mark->push_back(at(g, 160e-6 + (mark == &found.to ? kWindow : 0), phase));
    }
    PhaseRepeats repeats;
    repeats.period = is_piece ? 64 : 8;
    found.repeats.push_back(std::move(repeats));
  }
  return found;
}

TEST(SteadyTurns, WhereSomeMakeManyPhasesToOneTheOnesTellTheTime) {
  EXPECT_NEAR(*of_pieces(8 / 31e-6, 1 / 31e-6).turn(), 8 * 31e-6, 1e-9);
  // They began a phase at different times, so parts of it are not in the window.
  EXPECT_NEAR(*of_pieces(8.2 / 31e-6, 1 / 31e-6).turn(), 8 * 31e-6, 1e-9);
}

// Who began with the kernel had waited for something to sum.
TEST(SteadyTurns, TheFirstPhaseTellsNothing) {
  Window first = of_pieces(8 / 31e-6, 1 / 31e-6);
  first.from[1].at.phase = 0;
  first.from[1].at.phases = 0.5;
  first.from[1].at.entered = Time();
  first.to[1].at.phases = 0.5 + kWindow / 31e-6;
  EXPECT_FALSE(first.steady());
  // Of those that have many phases it is one of many.
  Window pieces = of_pieces(8 / 31e-6, 1 / 31e-6);
  pieces.from[0].at.phase = 0;
  EXPECT_TRUE(pieces.steady());
}

// They fill what lies between, and go at the others' pace when it is full: of one phase of those nothing is told.
TEST(SteadyTurns, WhoGetsAheadOfThemIsNotSteady) { EXPECT_FALSE(of_pieces(12 / 31e-6, 1 / 31e-6).steady()); }

// Of a slot in eight pieces each, `kWindow` has five, which one half of the groups fills so much faster.
Window of_slots(double faster) {
  Window found = of_pieces(8 * faster / 16e-6, 1 / 16e-6);
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    found.repeats[g].period = g % 2 == 0 ? 8 : 1;
    found.repeats[g].role = g % 2;
  }
  return found;
}

TEST(SteadyTurns, WhoFillsSlotsForOthersGetsAheadOfThem) {
  const std::optional<SteadyTurn> found = of_slots(1.2).steady();
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->seconds, 16e-6, 1e-9);
  ASSERT_EQ(found->leads.size(), kGroups);
  for (std::uint32_t g = 0; g < kGroups; ++g) EXPECT_NEAR(found->leads[g], g % 2 == 0 ? 1.2 : 1, 1e-6);
  EXPECT_TRUE(of_slots(1.01).steady()->leads.empty());
}

// Slots would be empty soon, or one of those that do the same waits for something else.
TEST(SteadyTurns, WhoFallsBehindOrGoesAloneIsNotSteady) {
  EXPECT_FALSE(of_slots(0.8).steady());
  Window alone = of_slots(1.2);
  alone.to[0].at.phases = alone.from[0].at.phases + 40;
  EXPECT_FALSE(alone.steady());
}

TEST(SteadyTurns, MuchFasterOnesDoNotStaySo) { EXPECT_FALSE(window(16e-6).turn()); }

TEST(WholeTurn, IsOfTheLastWholeTurnsOfAWindow) {
  const std::vector<TurnsAt> marks{{0, 0}, {1, 0.5}, {2, 1}, {4, 2}, {6, 2.75}};
  EXPECT_DOUBLE_EQ(*whole_turn(marks), (6 - 1.5) / 2);
  EXPECT_FALSE(whole_turn(std::span(marks).first(2)));
}

// A collective beside a kernel that it waits for: the turns are all of the window, and it stood at its first marks.
TEST(WholeTurn, MayBeginWithAWait) {
  const std::vector<TurnsAt> marks{{0, 4}, {1, 4}, {2, 5}, {4, 6}};
  EXPECT_DOUBLE_EQ(*whole_turn(marks), 2);
}

}  // namespace
}  // namespace weft
