#include "gpu_model/wave_skip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gpu_model/small_gpu.h"

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
  EXPECT_EQ(turns_left_out(waves, 2000, [](std::uint64_t) { return kTime; }), 16U);  // of 20: three seen, one to come
  EXPECT_EQ(waves.skipped().at, 16 * kTime);
  EXPECT_EQ(waves.skipped().hbm_read_bytes, 16 * 1000);
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
  EXPECT_EQ(turns_left_out(bound, 2000, [](std::uint64_t) { return SubCycle{250}; }, {1000, 200}), 16U);
  EXPECT_EQ(bound.skipped().at, 16 * 300);
  WaveSkip free(2000, kTurn, WaveSkip::kWaves, kHbmRate, kCache);
  EXPECT_EQ(turns_left_out(free, 2000, [](std::uint64_t) { return SubCycle{2500}; }, {1000, 200}), 16U);
  EXPECT_EQ(free.skipped().at, 16 * 2500);
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
  WaveSkip rounds(kWork, kTurn, WaveSkip::of_rounds(4000, 500), kHbmRate, kCache);
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
  WaveSkip rounds(1000 * kTurn, kTurn, WaveSkip::of_rounds(1000, 1000), kHbmRate, kCache);
  GpuProgress now;
  std::uint64_t turn = 1;
  for (; turn < 1000; ++turn) {
    now.at += kTime;
    if (rounds.advanced(turn * kTurn, [&] { return now; })) break;
  }
  EXPECT_EQ(turn, 136U);
}

// One long turn for three short ones: those that agree are the short ones.
TEST(WaveSkip, RoundsCountWhetherTheyAgreeOrNot) {
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(4000, 1000), kHbmRate, kCache);
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
  WaveSkip rounds(4000 * kTurn, kTurn, WaveSkip::of_rounds(4000, 4000), kHbmRate, kCache);
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
  EXPECT_FALSE(at(1));
  EXPECT_FALSE(at(2));
  rounds.begin_at(500 * kTurn);
  EXPECT_FALSE(at(3));
  EXPECT_FALSE(at(500));
  EXPECT_FALSE(at(501));
  EXPECT_TRUE(at(502));
}

// Until so much has gone through the L2 that nothing of what others left is there.
TEST(WaveSkip, AsksTheL2UntilItHoldsNothingElse) {
  WaveSkip waves(100 * kTurn, kTurn, WaveSkip::kWaves, kHbmRate, 10'000);
  GpuProgress now;
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
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
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    now.at += 250;
    now.hbm_read_bytes += 1000;
    now.memory_transactions += 200;
    static_cast<void>(waves.advanced(turn * kTurn, [&] { return now; }));
  }
  EXPECT_TRUE(waves.moves_the_same());
  EXPECT_EQ(waves.usual(3).fetched_bytes, 3000);
}

// Blocks that all run at once, in rounds of 128 lines: they load, compute for a while and store half as much.
Program one_wave(std::uint32_t blocks, double flops_of_block, std::uint32_t rounds = 256) {
  KernelDemand demand = grid_of(blocks, 128);
  demand.reads = {{.base = 0, .bytes_per_block = std::uint64_t{rounds} << 14}};
  demand.writes = {{.base = 128 << 20, .bytes_per_block = std::uint64_t{rounds} << 13}};
  demand.iterations = rounds;
  demand.stages = 2;
  demand.flops[0] = flops_of_block * blocks;
  return program_of({kernel_op(demand)});
}

void expect_the_same_in_less(const Program& program, double share = 0.7, const GpuSpec& gpu = small_gpu()) {
  AloneGpu whole(gpu, program);
  const Gpu& all = whole.run();
  AloneGpu skipping(gpu, program);
  skipping.skip_waves();
  const Gpu& some = skipping.run();
  ASSERT_TRUE(some.done());
  const GpuProgress& left_out = some.skipped();
  EXPECT_LT(some.statistics().memory_transactions, share * static_cast<double>(all.statistics().memory_transactions));
  EXPECT_GT(left_out.at, 0);
  EXPECT_NEAR(skipping.duration(0) / whole.duration(0), 1, 0.02);
  const double held = some.statistics().unit_seconds_compute + left_out.unit_seconds_compute;
  EXPECT_NEAR(held / all.statistics().unit_seconds_compute, 1, 0.03);
  const HbmStatistics seen = some.l2().hbm_statistics();
  const HbmStatistics expected = all.l2().hbm_statistics();
  EXPECT_NEAR(static_cast<double>(seen.read_bytes + left_out.hbm_read_bytes) / static_cast<double>(expected.read_bytes),
              1, 0.02);
  EXPECT_NEAR(
      static_cast<double>(seen.write_bytes + left_out.hbm_write_bytes) / static_cast<double>(expected.write_bytes), 1,
      0.02);
}

// Batches of writes and refreshes come at other times than they would have: single kernels are up to 2.5 % off, all
// together are not.
TEST(WaveSkip, RoundsOfOneWaveThatWaitsForHbm) {
  double whole_time = 0, skipping_time = 0;
  for (std::uint32_t rounds = 128; rounds <= 1024; rounds += 112) {
    const Program program = one_wave(8, 4, rounds);
    AloneGpu whole(small_gpu(), program);
    const Gpu& all = whole.run();
    AloneGpu skipping(small_gpu(), program);
    skipping.skip_waves();
    const Gpu& some = skipping.run();
    EXPECT_LT(some.statistics().memory_transactions, 0.8 * static_cast<double>(all.statistics().memory_transactions));
    const HbmStatistics seen = some.l2().hbm_statistics(), expected = all.l2().hbm_statistics();
    const auto moved = [](const HbmStatistics& h) { return static_cast<double>(h.read_bytes + h.write_bytes); };
    const GpuProgress& left_out = some.skipped();
    const auto skipped = static_cast<double>(left_out.hbm_read_bytes + left_out.hbm_write_bytes);
    EXPECT_NEAR((moved(seen) + skipped) / moved(expected), 1, 0.02) << rounds;
    EXPECT_NEAR(skipping.duration(0) / whole.duration(0), 1, 0.03) << rounds;
    whole_time += whole.duration(0);
    skipping_time += skipping.duration(0);
  }
  EXPECT_NEAR(skipping_time / whole_time, 1, 0.01);
}

TEST(WaveSkip, RoundsOfOneWaveThatComputes) { expect_the_same_in_less(one_wave(8, 6.4e8)); }

// Waves of blocks that stream the same lines, more than the L2 holds, and add to others, which are fetched first: what
// is left out moves as much as what is simulated.
TEST(WaveSkip, BlocksThatStreamTheSameLines) {
  constexpr std::uint32_t kBlocks = 16;
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = 4 << 20;
  KernelDemand demand = grid_of(kBlocks, 128);
  demand.shape.shared_memory_bytes = 40 << 10;  // one on a unit
  demand.reads = {{.base = 0, .bytes_per_block = 3 << 20, .divisor = kBlocks}};
  demand.writes = {{.base = 64 << 20, .bytes_per_block = 3 << 20, .divisor = kBlocks, .atomic = true}};
  demand.iterations = 6144;
  demand.stages = 2;
  demand.flops[0] = 4.8e8 * kBlocks;
  expect_the_same_in_less(program_of({kernel_op(demand)}), 0.8, gpu);
}

// Long waves across groups of blocks that stream the same lines: those that run become as many of a later group.
TEST(WaveSkip, WavesOfBlocksThatStreamTheSameLines) {
  constexpr std::uint32_t kBlocks = 240, kSharing = 15;
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = 4 << 20;
  KernelDemand demand = grid_of(kBlocks, 128);
  demand.shape.shared_memory_bytes = 40 << 10;  // one on a unit
  demand.reads = {{.base = 0, .bytes_per_block = 8 << 20, .divisor = kSharing}};
  demand.writes = {{.base = 128 << 20, .bytes_per_block = 4096}};
  demand.write_at_end = true;
  demand.iterations = 2048;
  demand.stages = 2;
  demand.flops[0] = 6.4e8 * kBlocks;
  expect_the_same_in_less(program_of({kernel_op(demand)}), 0.4, gpu);
}

// Two units have two blocks each and two have one, which is through in half of the time.
TEST(WaveSkip, BlocksThatShareAUnitGoOnMoreSlowly) { expect_the_same_in_less(one_wave(6, 6.4e8), 0.95); }

}  // namespace
}  // namespace weft
