// HBM channels: latencies of hits and misses, bandwidth, write batches.
#include "gpu_model/hbm.h"

#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

Hbm hbm(const HbmSpec& spec = small_gpu().hbm) { return Hbm(spec, megahertz(1000)); }

TEST(Hbm, AnUnloadedReadOfAClosedRowTakesTheLatency) {
  Hbm memory = hbm();
  EXPECT_EQ(memory.read(0, 0, 4, n(100)).done, n(100 + 200));
  EXPECT_EQ(memory.read(1, 0, 1, n(100)).done, n(100 + 200 - 3));  // a sector's burst is three sectors shorter
  EXPECT_EQ(memory.statistics().row_misses, 2);
  EXPECT_EQ(memory.statistics().read_bytes, 160);
}

TEST(Hbm, AnOpenRowSavesTheRowMiss) {
  Hbm memory = hbm();
  memory.read(0, 0, 4, n(0));
  const Hbm::Read hit = memory.read(0, 7, 4, n(1000));  // a row of 1 KiB holds 8 lines
  EXPECT_EQ(hit.done, n(1000 + 200 - 30));
  EXPECT_EQ(hit.waited, 0);
  EXPECT_EQ(memory.statistics().row_hits, 1);
  EXPECT_EQ(memory.read(0, 8, 4, n(2000)).done, n(2000 + 200));
  EXPECT_EQ(memory.statistics().row_misses, 2);
}

TEST(Hbm, ABankActivatesOnceARowCycle) {
  Hbm memory = hbm();
  const std::uint32_t same_bank = 16 * 8 * 33;  // row 528: 528 ^ 16 = 512, a multiple of the 16 banks, as row 0
  EXPECT_EQ(memory.read(0, 0, 4, n(0)).done, n(200));
  EXPECT_EQ(memory.read(0, same_bank, 4, n(0)).done, n(200 + 50));
  EXPECT_EQ(memory.read(0, 0, 4, n(0)).done, n(200 + 100));
  EXPECT_EQ(memory.statistics().row_misses, 3);
}

TEST(Hbm, OtherChannelsDoNotWait) {
  Hbm memory = hbm();
  for (int i = 0; i < 100; ++i) memory.read(0, static_cast<std::uint32_t>(i), 4, n(0));
  EXPECT_EQ(memory.read(3, 0, 4, n(0)).done, n(200));
}

TEST(HbmFormula, SaturatedReadsReachThePinsLessRefresh) {
  HbmSpec spec = small_gpu().hbm;
  spec.refresh_share = 0.05;
  Hbm memory = hbm(spec);
  constexpr int kLines = 100'000;
  SubCycle last = 0;
  for (int i = 0; i < kLines; ++i) {
    last = std::max(last, memory.read(2, static_cast<std::uint32_t>(i), 4, n(0)).done);
  }
  const double bytes_per_cycle = kLines * 128.0 / (static_cast<double>(last - n(200)) / static_cast<double>(kCycle));
  EXPECT_NEAR(bytes_per_cycle, 32 * 0.95, 32 * 0.001);
}

TEST(Hbm, DrainsWritesInBatchesBehindATurnaround) {
  Hbm memory = hbm();  // a batch of 8 lines
  memory.read(0, 0, 4, n(0));
  for (int i = 0; i < 7; ++i) memory.write(0, 4, n(1000));
  EXPECT_EQ(memory.read(0, 1, 4, n(1000)).waited, 0);  // queued writes cost nothing yet
  memory.write(0, 4, n(2000));
  const Hbm::Read behind = memory.read(0, 2, 4, n(2000));
  EXPECT_EQ(behind.waited, n(2 * 10 + 8 * 4));  // there and back, and 8 lines
  EXPECT_EQ(memory.statistics().write_bytes, 8 * 128);
}

TEST(HbmFormula, WriteBandwidthPaysTwoTurnaroundsABatch) {
  Hbm memory = hbm();
  constexpr int kLines = 8 * 1000;
  for (int i = 0; i < kLines; ++i) memory.write(1, 4, n(0));
  const SubCycle bus_free = memory.accepts_from(1) + n(64 * 4);  // a queue of 64 lines
  EXPECT_EQ(bus_free, n(kLines / 8 * (8 * 4 + 20)));
}

TEST(Hbm, AcceptsNoMoreThanItsQueueHolds) {
  Hbm memory = hbm();
  EXPECT_LE(memory.accepts_from(0), n(0));
  for (int i = 0; i < 64; ++i) memory.read(0, static_cast<std::uint32_t>(i), 4, n(0));
  EXPECT_LE(memory.accepts_from(0), n(0));
  memory.read(0, 64, 4, n(0));
  EXPECT_EQ(memory.accepts_from(0), n(4));
}

TEST(Hbm, ForgetsWhatIsUnderWayAtRest) {
  Hbm memory = hbm();
  for (int i = 0; i < 100; ++i) memory.read(0, static_cast<std::uint32_t>(i), 4, n(0));
  memory.rest();
  EXPECT_EQ(memory.read(0, 99, 4, n(0)).done, n(200));
  EXPECT_EQ(memory.statistics().read_bytes, 128);
}

}  // namespace
}  // namespace weft
