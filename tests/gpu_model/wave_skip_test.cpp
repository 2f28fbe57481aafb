#include "gpu_model/wave_skip.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft {
namespace {

constexpr std::uint64_t kTurn = 100;
constexpr double kHbmRate = 4;  // bytes a subcycle
constexpr SubCycle kTime = 500;
constexpr std::int64_t kCache = 1 << 20;

// Does `work` in turns that take what `time(turn)` says and read 1000 bytes. Where turns agree, all but the last are
// left out, each of which moves `moved`. How many they were.
template <class TurnTime>
std::uint64_t turns_left_out(WaveSkip& waves, std::uint64_t work, TurnTime time, L2Cache::Touched moved = {1000, 0}) {
  GpuProgress now;
  std::uint64_t left_out = 0;
  for (std::uint64_t done = kTurn; done <= work; done += kTurn) {
    now.at += time(done / kTurn);
    now.hbm_read_bytes += 1000;
    if (!waves.advanced(done, [&] { return now; })) continue;
    for (bool alike = true; alike && done + 2 * kTurn <= work; ++left_out) {
      alike = waves.leave_out(kTurn, moved);
      done += kTurn;
    }
    return left_out;
  }
  return 0;
}

TEST(WaveSkip, LeavesOutTurnsOfASettledKernelAndKeepsTheLast) {
  WaveSkip waves(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(waves, 2000, [](std::uint64_t) { return kTime; }), 12U);  // of 20: seven seen, one to come
  EXPECT_EQ(waves.skipped().at, 12 * kTime);
  EXPECT_EQ(waves.skipped().hbm_read_bytes, 12 * 1000);
  EXPECT_EQ(waves.variance(), 0);
}

TEST(WaveSkip, TakesTheMeanOfTurnsAndSaysHowTheyScatter) {
  WaveSkip waves(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  const auto turns = static_cast<SubCycle>(
      turns_left_out(waves, 2000, [](std::uint64_t turn) { return SubCycle{turn % 2 == 0 ? 1000 : 1010}; }));
  ASSERT_GT(turns, 0);
  EXPECT_EQ(waves.skipped().at, turns * 1005);
  EXPECT_DOUBLE_EQ(std::sqrt(waves.variance()), static_cast<double>(turns) * 10 / 2);
}

TEST(WaveSkip, WaitsWhileTurnsStillChange) {
  WaveSkip waves(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(waves, 2000, [](std::uint64_t turn) { return static_cast<SubCycle>(1000 * turn); }), 0U);
}

TEST(WaveSkip, LeavesOutNothingOfAFewTurns) {
  WaveSkip waves(400, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(waves, 400, [](std::uint64_t) { return kTime; }), 0U);
}

// 1000 bytes in 250 subcycles are all that HBM can do.
TEST(WaveSkip, TurnsThatHbmDecidesTakeAsLongAsTheirBytes) {
  WaveSkip bound(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(bound, 2000, [](std::uint64_t) { return SubCycle{250}; }, {1000, 200}), 12U);
  EXPECT_EQ(bound.skipped().at, 12 * 300);
  WaveSkip free(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(free, 2000, [](std::uint64_t) { return SubCycle{2500}; }, {1000, 200}), 12U);
  EXPECT_EQ(free.skipped().at, 12 * 2500);
}

TEST(WaveSkip, LooksAgainWhereTurnsMoveMoreOrLess) {
  WaveSkip waves(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(waves, 2000, [](std::uint64_t) { return SubCycle{250}; }, {1500, 0}), 1U);
}

TEST(WaveSkip, LeavesOutMoreEachTimeThatTurnsStayAsTheyWere) {
  WaveSkip waves(1'000'000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t done = 0;
  std::uint64_t simulated = 0;
  std::uint64_t most = 0;
  while (done + 2 * kTurn < 1'000'000) {
    done += kTurn;
    now.at += kTime;
    ++simulated;
    if (!waves.advanced(done, [&] { return now; })) continue;
    most = std::min(waves.most_turns(), (1'000'000 - done) / kTurn - 1);
    static_cast<void>(waves.leave_out(most * kTurn, {}, most));
    done += most * kTurn;
    now += waves.skipped();
  }
  EXPECT_LT(simulated, 30U);  // of 10,000
  EXPECT_GT(most, 1000U);
}

// Rounds go faster, then slower again, and scatter: what is left out goes as those before it.
TEST(WaveSkip, SamplesRoundsAllAlong) {
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

TEST(WaveSkip, LeavesOutNoRoundsBeforeTheyHaveSettled) {
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
TEST(WaveSkip, DoesNotLookAtRoundsRightBehindWhatItLeftOut) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  const auto time = [](std::uint64_t turn, std::uint64_t since) { return turn > 150 && since < 12 ? 700 : 1000; };
  EXPECT_NEAR(static_cast<double>(in_rounds(rounds, 4000, time).at), 4000 * 1000,
              8000);  // behind the last: 12 times 300
}

// They scatter, and all count.
TEST(WaveSkip, LooksAtRoundsThatDoNotSettleAgain) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(500), kHbmRate, kCache);
  const auto time = [](std::uint64_t turn, std::uint64_t since) {
    return turn < 150 ? 1000 : since / 8 % 2 == 0 ? 700 : 1500;
  };
  const double all = static_cast<double>(in_rounds(rounds, 4000, time).at);
  EXPECT_NEAR(all, 150 * 1000 + 3850 * 1100, 0.01 * all);
}

// Two looks that agree are enough.
TEST(WaveSkip, LooksTwiceAtRoundsThatStayFaster) {
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
TEST(WaveSkip, RoundsOfBlocksThatBeginTakeTheirTime) {
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
TEST(WaveSkip, RoundsCountWhetherTheyAgreeOrNot) {
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
TEST(WaveSkip, SaysWhatChangesSlowly) {
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

TEST(WaveSkip, BeginsAnewWhereOthersWereLeftOut) {
  WaveSkip rounds(1000 * kTurn, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  const auto at = [&](std::uint64_t turn) {
    return rounds.advanced(turn * kTurn, [&] { return GpuProgress{.at = static_cast<SubCycle>(turn) * kTime}; });
  };
  EXPECT_FALSE(at(8));
  EXPECT_FALSE(at(9));
  rounds.begin_at(500 * kTurn);
  EXPECT_FALSE(at(10));
  EXPECT_FALSE(at(500));
  EXPECT_FALSE(at(501));
  EXPECT_TRUE(at(502));
}

// Until so much has gone through the L2 that nothing of what others left is there.
TEST(WaveSkip, AsksTheL2UntilItHoldsNothingElse) {
  WaveSkip waves(100 * kTurn, kTurn, WaveSkip::kWaves, kHbmRate, 10'000);
  GpuProgress now;
  for (std::uint64_t turn = 1; turn <= 10; ++turn) {
    now.at += 250;  // all that HBM can do
    now.hbm_read_bytes += 1000;
    static_cast<void>(waves.advanced(turn * kTurn, [&] { return now; }));
  }
  for (int turn = 0; turn < 19; ++turn) {
    EXPECT_FALSE(waves.moves_the_same()) << turn;
    EXPECT_TRUE(waves.leave_out(kTurn, {1100, 0}));
  }
  EXPECT_TRUE(waves.moves_the_same());
  EXPECT_EQ(waves.usual(3).fetched_bytes, 3300);
  EXPECT_FALSE(waves.leave_out(kTurn, {2000, 0}));
  EXPECT_FALSE(waves.moves_the_same());
}

// A turn that fills the L2 again and again leaves it as it finds it.
TEST(WaveSkip, DoesNotAskTheL2AboutTurnsThatFillIt) {
  WaveSkip waves(100 * kTurn, kTurn, WaveSkip::kWaves, kHbmRate, 10'000);
  GpuProgress now;
  for (std::uint64_t turn = 1; turn <= 10; ++turn) {
    now.at += 250;
    now.hbm_read_bytes += 1000;
    now.memory_transactions += 200;
    static_cast<void>(waves.advanced(turn * kTurn, [&] { return now; }));
  }
  EXPECT_TRUE(waves.moves_the_same());
  EXPECT_EQ(waves.usual(3).fetched_bytes, 3000);
}

}  // namespace
}  // namespace weft
