// HBM channels: rows, the order of service, write batches, refresh, the bounded queue.
#include "gpu_model/hbm.h"

#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

Hbm hbm(const HbmSpec& spec = small_gpu().hbm) { return Hbm(spec, megahertz(1000)); }

// The first line of the k-th row of bank 0, of the first eight: rows 0, 33, 66, ... under the hash of rows and banks.
std::uint32_t row_of_bank_0(std::uint32_t k) { return k * 33 * 8; }

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

TEST(Hbm, ARowMayBeALineAndAChannelABank) {
  HbmSpec spec = small_gpu().hbm;
  spec.row_bytes = 128;
  spec.banks = 1;
  Hbm memory = hbm(spec);
  memory.read(0, 5, 4, n(0));
  memory.read(0, 5, 4, n(1000));
  EXPECT_EQ(memory.statistics().row_hits, 1);
  memory.read(0, 6, 4, n(2000));
  EXPECT_EQ(memory.statistics().row_misses, 2);
}

TEST(Hbm, ABankActivatesOnceARowCycle) {
  Hbm memory = hbm();
  EXPECT_EQ(memory.read(0, row_of_bank_0(0), 4, n(0)).done, n(200));
  EXPECT_EQ(memory.read(0, row_of_bank_0(1), 4, n(0)).done, n(200 + 50));
  EXPECT_EQ(memory.read(0, row_of_bank_0(2), 4, n(0)).done, n(200 + 100));
  EXPECT_EQ(memory.statistics().row_misses, 3);
}

TEST(Hbm, OtherChannelsDoNotWait) {
  Hbm memory = hbm();
  for (std::uint32_t i = 0; i < 100; ++i) memory.read(0, i, 4, n(0));
  EXPECT_EQ(memory.read(3, 0, 4, n(0)).done, n(200));
}

TEST(Hbm, AnOpenRowOvertakesOneThatIsStillToBeOpened) {
  Hbm memory = hbm();
  memory.read(0, 8, 4, n(0));                                           // bank 1 has its row open
  const Hbm::Read miss = memory.read(0, row_of_bank_0(1), 4, n(1000));  // the bus waits for the row of bank 0
  const Hbm::Read hit = memory.read(0, 9, 4, n(1001));
  EXPECT_EQ(miss.done, n(1000 + 200));
  EXPECT_EQ(hit.done, n(1001 + 170));
}

TEST(Hbm, ARowServesUntilItsBankPrecharges) {
  Hbm memory = hbm();
  memory.read(0, row_of_bank_0(0), 4, n(0));
  const Hbm::Read conflict = memory.read(0, row_of_bank_0(1), 4, n(1));  // may precharge at 50 only
  EXPECT_EQ(conflict.done, n(50 + 200));
  EXPECT_EQ(memory.read(0, 1, 4, n(34)).done, n(34 + 170));  // before that
  EXPECT_EQ(memory.statistics().row_hits, 1);
  EXPECT_EQ(memory.read(0, 2, 4, n(60)).done, n(100 + 200));  // after it
}

TEST(Hbm, ActivationsKeepTheirDistance) {
  HbmSpec spec = small_gpu().hbm;
  spec.activation = nanoseconds(8);
  Hbm memory = hbm(spec);
  SubCycle last = 0;
  for (std::uint32_t row = 0; row < 4; ++row) last = memory.read(0, row * 8, 1, n(0)).done;  // four banks
  EXPECT_EQ(last, n(3 * 8 + 200 - 3));
}

TEST(Hbm, DrainsWritesInBatchesBetweenTwoTurnarounds) {
  Hbm memory = hbm();  // a batch of 8 lines
  memory.read(0, 0, 4, n(0));
  for (std::uint32_t i = 0; i < 7; ++i) memory.write(0, i, 4, n(1000));
  EXPECT_EQ(memory.read(0, 1, 4, n(1000)).waited, 0);  // queued writes cost nothing yet
  memory.write(0, 7, 4, n(2000));                      // all in the open row
  const Hbm::Read behind = memory.read(0, 2, 4, n(2000));
  EXPECT_EQ(behind.waited, n(2 * 10 + 8 * 4));  // there and back, and 8 lines
  EXPECT_EQ(memory.statistics().write_bytes, 8 * 128);
}

TEST(Hbm, WritesOpenRowsAndTheirBanksRecover) {
  HbmSpec spec = small_gpu().hbm;
  spec.write_recovery = nanoseconds(40);
  spec.turnaround = Time(0);
  Hbm memory = hbm(spec);
  for (std::uint32_t i = 0; i < 8; ++i) memory.write(0, i, 4, n(0));  // row 0: opens in 30, bursts until 62
  EXPECT_EQ(memory.statistics().row_misses, 1);
  EXPECT_EQ(memory.read(0, row_of_bank_0(1), 4, n(70)).done, n(30 + 32 + 40 + 200));
}

TEST(Hbm, RefreshStopsAChannelOnceAnInterval) {
  HbmSpec spec = small_gpu().hbm;
  spec.channels = 1;
  spec.bandwidth = gigabytes_per_second(32);
  spec.refresh = nanoseconds(300);  // and a row miss: from 3900 to 4230
  Hbm memory = hbm(spec);
  memory.read(0, 0, 4, n(3800));
  EXPECT_EQ(memory.read(0, 1, 4, n(3896)).done, n(3896 + 170));
  EXPECT_EQ(memory.read(0, 2, 4, n(3900)).done, n(4230 + 170));
  EXPECT_EQ(memory.read(0, 3, 4, n(100'000)).done, n(100'000 + 170));
  EXPECT_EQ(memory.read(0, 4, 4, n(100 * 3900 + 30)).done, n(100 * 3900 + 330 + 170));  // also after a long sleep
}

TEST(Hbm, AcceptsNoMoreThanItsQueueHolds) {
  Hbm memory = hbm();
  EXPECT_LE(memory.accepts_from(0), n(0));
  for (std::uint32_t i = 0; i < 8; ++i) memory.read(0, i, 4, n(0));
  EXPECT_LE(memory.accepts_from(0), n(0));
  for (std::uint32_t i = 0; i < 64; ++i) memory.read(0, i % 8, 4, n(30));
  EXPECT_EQ(memory.accepts_from(0), n(8 * 4));
}

TEST(Hbm, ForgetsWhatIsUnderWayAtRest) {
  Hbm memory = hbm();
  for (std::uint32_t i = 0; i < 100; ++i) memory.read(0, i, 4, n(0));
  memory.rest();
  EXPECT_EQ(memory.read(0, 99, 4, n(0)).done, n(200));
  EXPECT_EQ(memory.statistics().read_bytes, 128);
}

}  // namespace
}  // namespace weft
