// When the iterations of a replay begin and end.
#include "cli/run/step_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(StepBounds, AnIterationEndsWithItsLastOperationOrWhatTheHostDoesBehindIt) {
  const StepBounds bounds{0, {3, 5, 9}, {3, 5, 13}};
  EXPECT_THAT(iteration_lengths({4, 4.5, 12}, bounds), ElementsAre(4, 1, 8));
  EXPECT_THAT(iteration_lengths({4, 4.5, 12}, {}), ElementsAre(DoubleEq(4), DoubleEq(0.5), DoubleEq(7.5)));
}

TEST(StepBounds, WhatTheDeviceTookOverFromBeforeDoesNotCountAsFarAsItIsHandedOn) {
  // The device began 30 behind the host, and is 32 behind when the host is through with the first iteration.
  EXPECT_THAT(iteration_lengths({49, 68}, {30, {17, 33}, {17, 33}}), ElementsAre(19, 19));
  EXPECT_THAT(iteration_lengths({49, 68}, {30, {37, 56}, {37, 56}}), ElementsAre(37, 19));   // 12 behind
  EXPECT_THAT(iteration_lengths({49, 68}, {30, {60, 99}, {60, 110}}), ElementsAre(60, 50));  // late for another reason
  EXPECT_THAT(iteration_lengths({49, 68}, {30, {}, {}}), ElementsAre(19, 19));
}

TEST(StepBounds, AreThoseOfTheProgramsThatRan) {
  const ClockDomain clock(Frequency(1'000'000'000));
  const auto us = [&](double t) { return clock.to_subcycles(microseconds(t)); };
  const auto near_us = [](double t) { return DoubleNear(t * 1e-6, 1e-10); };
  Program program;
  program.iterations = 2;
  program.ops.edit().resize(3);
  program.ops.edit()[1].kind = ProgramOpKind::host_wait;
  program.ops.edit()[2].iteration = 1;
  program.step_ends = {{microseconds(10), microseconds(4)}, {microseconds(20), microseconds(3)}};
  program.begins_with = OpId{0};
  std::vector<OpTimes> times(3);
  times[0] = {.called = us(1), .unblocked = 0, .start = us(40), .end = us(50), .placed = us(42)};
  times[1] = {.called = us(60), .unblocked = 0, .start = us(60), .end = us(60)};
  times[2] = {.called = us(75), .unblocked = 0, .start = us(80), .end = us(90)};
  StepBounds steps;
  steps.add(program, times, clock);
  EXPECT_THAT(steps.begin_s.value(), near_us(42));
  EXPECT_THAT(steps.host_end_s, ElementsAre(near_us(70), near_us(95)));
  EXPECT_THAT(steps.end_s, ElementsAre(near_us(64), near_us(93)));

  times[2].called = us(85);  // of another GPU, whose device was at nothing else before
  program.begins_with.reset();
  steps.add(program, times, clock);
  EXPECT_EQ(steps.begin_s, 0.0);
  EXPECT_THAT(steps.host_end_s, ElementsAre(near_us(70), near_us(105)));
  EXPECT_THAT(steps.end_s, ElementsAre(near_us(64), near_us(93)));
}

}  // namespace
}  // namespace weft
