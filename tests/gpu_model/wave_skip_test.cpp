#include "gpu_model/wave_skip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gpu_model/turns.h"

namespace weft {
namespace {

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
