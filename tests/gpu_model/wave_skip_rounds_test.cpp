// Rounds of blocks that run, which are sampled all along.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_model/wave_skip.h"
#include "tests/gpu_model/turns.h"

namespace weft {
namespace {

// Rounds go faster, then slower again, and scatter: what is left out goes as those before it.
TEST(WaveSkipRounds, SamplesRoundsAllAlong) {
  constexpr std::uint64_t kWork = 4000 * kTurn;
  const auto time = [](std::uint64_t turn) {
    const SubCycle trend = turn < 2000 ? turn / 10 : 400 - turn / 10;
    return 1000 - trend + (turn % 3 == 0 ? 40 : 0);
  };
  WaveSkip rounds(kWork, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  GpuProgress now;
  SubCycle whole = 0;
  std::uint64_t simulated = 0;
  for (std::uint64_t turn = 0; turn < 4000; ++turn, ++simulated) {
    now.at += time(turn);
    whole += time(turn);
    if (!rounds.advanced((turn + 1) * kTurn, [&] { return now; })) continue;
    const std::uint64_t most = std::min<std::uint64_t>(rounds.most_turns(), 3999 - turn);
    static_cast<void>(rounds.leave_out(most * kTurn, {}, most));
    now += rounds.skipped();
    for (std::uint64_t left = 0; left < most; ++left) whole += time(++turn);
  }
  EXPECT_NEAR(static_cast<double>(now.at) / static_cast<double>(whole), 1, 0.01);
  EXPECT_NEAR(static_cast<double>(simulated), 128 + (4000 - 128) * 8.0 / 49, 10);  // then eight, and 41 left out
}

TEST(WaveSkipRounds, LeavesOutNoRoundsBeforeTheyHaveSettled) {
  WaveSkip rounds(1000 * kTurn, kTurn, WaveSkip::of_rounds(1000), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t turn = 1;
  for (; turn < 1000; ++turn) {
    now.at += kTime;
    if (rounds.advanced(turn * kTurn, [&] { return now; })) break;
  }
  EXPECT_EQ(turn, 136U);
}

// Goes through turns that take `time(turn, since what was left out)`, and leaves out 41 each time that it may.
template <class Time>
GpuProgress in_rounds(WaveSkip& rounds, std::uint64_t turns, Time&& time) {
  GpuProgress now;
  for (std::uint64_t turn = 0, since = 0; turn < turns; ++turn, ++since) {
    now.at += time(turn, since);
    if (!rounds.advanced((turn + 1) * kTurn, [&] { return now; }) || turn + 41 >= turns) continue;
    static_cast<void>(rounds.leave_out(41 * kTurn, {}, 41));
    now += rounds.skipped();
    turn += 41;
    since = 0;
  }
  return now;
}

// Blocks are faster until they queue for the same banks again: all takes as long as if they were not.
TEST(WaveSkipRounds, DoesNotLookAtRoundsRightBehindWhatItLeftOut) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  const auto time = [](std::uint64_t turn, std::uint64_t since) { return turn > 150 && since < 12 ? 700 : 1000; };
  EXPECT_NEAR(static_cast<double>(in_rounds(rounds, 4000, time).at), 4000 * 1000,
              8000);  // behind the last: 12 times 300
}

// Blocks are slower for a while: what is left out then, turn by turn, makes up for it, but never goes back in time.
TEST(WaveSkipRounds, TimeLeftOutNeverRunsBackwards) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t done = 0;
  const auto until_looked_at = [&](std::uint64_t slow_turns) {
    do {
      now.at += slow_turns > 0 ? 1500 : 1000;
      slow_turns -= slow_turns > 0 ? 1 : 0;
    } while (!rounds.advanced(done += kTurn, [&] { return now; }));
  };
  const auto leave_out = [&](std::uint64_t turns) {
    SubCycle before = 0;
    for (std::uint64_t turn = 0; turn < turns; ++turn, done += kTurn) {
      static_cast<void>(rounds.leave_out(kTurn, {}, 1));
      EXPECT_GE(rounds.skipped().at, before);
      before = rounds.skipped().at;
    }
    now += rounds.skipped();
  };
  until_looked_at(0);
  leave_out(4);
  until_looked_at(12);  // 6000 too slow
  leave_out(4);
  until_looked_at(0);
  leave_out(10);  // two that take nothing, and eight
  EXPECT_EQ(now.at, static_cast<SubCycle>(done / kTurn * 1000));
}

// They scatter, and all count.
TEST(WaveSkipRounds, LooksAtRoundsThatDoNotSettleAgain) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  const auto time = [](std::uint64_t turn, std::uint64_t since) {
    return turn < 150 ? 1000 : since / 8 % 2 == 0 ? 700 : 1500;
  };
  const double all = static_cast<double>(in_rounds(rounds, 4000, time).at);
  EXPECT_NEAR(all, 150 * 1000 + 3850 * 1100, 0.01 * all);
}

// Two looks that agree are enough.
TEST(WaveSkipRounds, LooksTwiceAtRoundsThatStayFaster) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t done = 0;
  const auto turns_until_looked_at = [&](SubCycle time) {
    for (std::uint64_t turns = 1;; ++turns) {
      now.at += time;
      if (rounds.advanced(done += kTurn, [&] { return now; })) return turns;
    }
  };
  EXPECT_EQ(turns_until_looked_at(1000), 136U);
  static_cast<void>(rounds.leave_out(41 * kTurn, {}, 41));
  now += rounds.skipped();
  done += 41 * kTurn;
  EXPECT_EQ(turns_until_looked_at(700), 16U);
}

// Blocks that begin are slower of themselves: that is no trace of what was left out.
TEST(WaveSkipRounds, RoundsOfBlocksThatBeginTakeTheirTime) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t turn = 0;
  const auto until_looked_at = [&](auto&& time) {
    for (bool looked = false; !looked && turn < 400; ++turn) {
      now.at += time();
      looked = rounds.advanced((turn + 1) * kTurn, [&] { return now; });
    }
    static_cast<void>(rounds.leave_out(41 * kTurn, {}, 41));
    now += rounds.skipped();
    turn += 41;
  };
  until_looked_at([] { return 1000; });
  rounds.begin_at(turn * kTurn);
  until_looked_at([slow = 8]() mutable { return slow-- > 0 ? 1500 : 1000; });
  EXPECT_EQ(rounds.skipped().at, 41 * 1000);
}

// One long turn for three short ones: those that agree are the short ones.
TEST(WaveSkipRounds, RoundsCountWhetherTheyAgreeOrNot) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(1000), kHbmRate, kCache);
  GpuProgress now;
  for (std::uint64_t turn = 1; turn < 200; ++turn) {
    now.at += turn % 4 == 0 ? 4 * kTime : kTime;
    if (rounds.advanced(turn * kTurn, [&] { return now; })) break;
  }
  static_cast<void>(rounds.leave_out(80 * kTurn, {}, 80));
  EXPECT_EQ(rounds.skipped().at, 140 * kTime);
  // Of eight turns, two are 9/4 off and six 3/4; the mean of eight scatters by less than one.
  EXPECT_NEAR(std::sqrt(rounds.variance()), 80 * kTime * std::sqrt((2 * 81 + 6 * 9) / 16.0 / 7 / 8), 80);
}

// All turns of a look take as long, and so do those of the next looks; later ones take longer.
TEST(WaveSkipRounds, SaysWhatChangesSlowly) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(4000), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t turn = 0;
  for (int look = 0; look < 8; ++look) {
    bool looked = false;
    while (!looked) {
      now.at += look < 4 ? kTime : kTime + 100;
      looked = rounds.advanced(++turn * kTurn, [&] { return now; });
    }
    static_cast<void>(rounds.leave_out(10 * kTurn, {}, 10));
    now += rounds.skipped();
    turn += 10;
  }
  EXPECT_NEAR(std::sqrt(rounds.variance()), std::sqrt(2) * 40 * 100 / 2, 1);
}

}  // namespace
}  // namespace weft
