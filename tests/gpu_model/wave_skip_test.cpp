#include "gpu_model/wave_skip.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr double kManyLines = 1e5;  // of a wave: a turn is one wave
constexpr std::uint64_t kResident = 100;

// Ends one block after another, a turn in the time that `turn_time(turn)` says, until some are left out.
template <class TurnTime>
std::uint64_t blocks_left_out(WaveSkip& waves, std::uint64_t blocks, TurnTime turn_time) {
  GpuProgress now;
  for (std::uint64_t done = 1; done <= blocks; ++done) {
    if (done % kResident == 0) {
      now.at += turn_time(done / kResident);
      now.hbm_read_bytes += 1000;
    }
    const std::uint64_t started = std::min(blocks, done + kResident);
    if (const std::uint64_t left_out = waves.block_ended(done, started, [&] { return now; })) return left_out;
  }
  return 0;
}

TEST(WaveSkip, LeavesOutWholeWavesOfASettledKernelAndKeepsTheLast) {
  WaveSkip waves(2050, kResident, kManyLines / kResident, 0, 1e6);
  const std::uint64_t left_out = blocks_left_out(waves, 2050, [](std::uint64_t) { return SubCycle{500}; });
  EXPECT_EQ(left_out % kResident, 0U);
  EXPECT_EQ(left_out, 1500U);  // of 2050: three turns seen, one more under way, one and a half to come
  EXPECT_EQ(waves.skipped().at, 15 * 500);
  EXPECT_EQ(waves.skipped().hbm_read_bytes, 15 * 1000);
  EXPECT_EQ(waves.uncertainty(), 0);
}

TEST(WaveSkip, TakesTheMeanOfTurnsAndSaysHowTheyScatter) {
  WaveSkip waves(2000, kResident, kManyLines / kResident, 0, 1e6);
  const std::uint64_t left_out =
      blocks_left_out(waves, 2000, [](std::uint64_t turn) { return SubCycle{turn % 2 == 0 ? 1000 : 1010}; });
  ASSERT_GT(left_out, 0U);
  const auto turns = static_cast<SubCycle>(left_out / kResident);
  EXPECT_EQ(waves.skipped().at, turns * 1005);
  EXPECT_EQ(waves.uncertainty(), turns * 10 / 2);
}

TEST(WaveSkip, WaitsWhileTurnsStillChange) {
  WaveSkip waves(2000, kResident, kManyLines / kResident, 0, 1e6);
  EXPECT_EQ(blocks_left_out(waves, 2000, [](std::uint64_t turn) { return static_cast<SubCycle>(1000 * turn); }), 0U);
}

TEST(WaveSkip, LeavesOutNothingOfAFewWaves) {
  WaveSkip waves(400, kResident, kManyLines / kResident, 0, 1e6);
  EXPECT_EQ(blocks_left_out(waves, 400, [](std::uint64_t) { return SubCycle{500}; }), 0U);
}

// Until a kernel has replaced what the cache held, only short parts are left out, and it is looked at again.
TEST(WaveSkip, LeavesOutShortPartsUntilTheCacheHasBeenReplaced) {
  constexpr double kOwnLines = 1000;  // of a block: of the cache, each turn replaces a tenth
  WaveSkip waves(100000, kResident, kOwnLines, kOwnLines, 10 * kResident * kOwnLines);
  const std::uint64_t left_out = blocks_left_out(waves, 100000, [](std::uint64_t) { return SubCycle{500}; });
  EXPECT_EQ(left_out, 2 * kResident);  // a quarter of the cache, in whole turns
}

}  // namespace
}  // namespace weft
