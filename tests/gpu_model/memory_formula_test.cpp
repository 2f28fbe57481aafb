// The memory system against formulas: bandwidths from timing, waiting from queueing theory.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gpu_model/l2_cache.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }
constexpr int kLines = 50'000;

double in_cycles(SubCycle t) { return static_cast<double>(t) / static_cast<double>(kCycle); }

HbmSpec timing() {
  HbmSpec spec = small_gpu().hbm;
  spec.channels = 1;
  spec.bandwidth = gigabytes_per_second(32);  // a sector a cycle
  return spec;
}

// Cycles for each of kLines reads that come as fast as the channel takes them.
template <class LineOf>
double cycles_each(const HbmSpec& spec, std::uint32_t sectors, LineOf line_of) {
  Hbm memory(spec, megahertz(1000));
  SubCycle now = 0;
  SubCycle last = 0;
  for (int i = 0; i < kLines; ++i) {
    now = std::max(now, memory.accepts_from(0));
    last = std::max(last, memory.read(0, line_of(static_cast<std::uint32_t>(i)), sectors, now).done);
  }
  return in_cycles(last - n(200)) / kLines;
}

// One line, some sectors of it.
L2Cache::Lines only(LineAddress line, std::uint32_t sectors) {
  return {.first = line, .first_sectors = sectors, .last_sectors = sectors};
}

TEST(MemoryFormula, RowHitsReachThePins) {
  EXPECT_NEAR(cycles_each(timing(), 4, [](std::uint32_t i) { return i % 8; }), 4, 4 * 0.01);
  EXPECT_NEAR(cycles_each(timing(), 1, [](std::uint32_t i) { return i % 8; }), 1, 1 * 0.01);
}

TEST(MemoryFormula, RefreshCostsItsShareOfTime) {
  HbmSpec spec = timing();
  spec.refresh = nanoseconds(300);
  const double share = (300 + 30) / 3900.0;  // a refresh, and the rows to open again
  const double taken = cycles_each(spec, 4, [](std::uint32_t i) { return i % 8; });
  EXPECT_NEAR(taken, 4 / (1 - share), 4 * 0.01);
}

TEST(MemoryFormula, RowMissesOfOneBankTakeARowCycleEach) {
  const double taken = cycles_each(timing(), 4, [](std::uint32_t i) { return i % 8 * 33 * 8; });  // rows of bank 0
  EXPECT_NEAR(taken, 50, 50 * 0.01);
}

// Rows one after another, a line of each: the slowest of bus, banks and activations.
TEST(MemoryFormula, RowMissesOverAllBanksTakeTheSlowestOfTheirLimits) {
  for (const int banks : {2, 4, 8, 16}) {
    for (const int activation : {1, 6, 9}) {
      HbmSpec spec = timing();
      spec.banks = static_cast<std::uint32_t>(banks);
      spec.activation = nanoseconds(activation);
      const double expected = std::max({4.0, 50.0 / banks, static_cast<double>(activation)});
      const double taken = cycles_each(spec, 4, [&](std::uint32_t i) { return i % (1U << 18) * 8; });
      EXPECT_NEAR(taken, expected, expected * 0.03) << banks << " banks, activations each " << activation;
    }
  }
}

// Single sectors at random: activations bound them, not the bus. With many banks few requests wait for theirs.
TEST(MemoryFormula, RandomSectorsAreBoundByActivations) {
  HbmSpec spec = timing();
  spec.banks = 64;
  spec.activation = nanoseconds(5);
  std::mt19937 random(1);
  const double taken = cycles_each(spec, 1, [&](std::uint32_t) { return static_cast<std::uint32_t>(random() >> 8); });
  EXPECT_NEAR(taken, 5, 5 * 0.03);
}

// Batches of writes between reads: 8 lines written for so many read, two turnarounds.
TEST(MemoryFormula, MixedReadsAndWritesPayTwoTurnaroundsABatch) {
  for (const int reads : {8, 16, 32}) {
    Hbm memory(timing(), megahertz(1000));
    SubCycle now = 0;
    SubCycle last = 0;
    constexpr int kBatches = 1000;
    for (int batch = 0; batch < kBatches; ++batch) {
      for (int i = 0; i < reads; ++i) {
        now = std::max(now, memory.accepts_from(0));
        last = memory.read(0, static_cast<std::uint32_t>(i % 8), 4, now).done;
        if (i % (reads / 8) == 0) memory.write(0, static_cast<std::uint32_t>(i % 8), 4, now);
      }
    }
    const double expected = (reads + 8) * 4 + 2 * 10;
    EXPECT_NEAR(in_cycles(last) / kBatches, expected, expected * 0.02) << reads;
  }
}

TEST(MemoryFormula, WritesAloneReachThePins) {
  Hbm memory(timing(), megahertz(1000));
  SubCycle now = 0;
  for (int i = 0; i < kLines; ++i) {
    now = std::max(now, memory.accepts_from(0));
    memory.write(0, static_cast<std::uint32_t>(i) % 4096, 4, now);
  }
  EXPECT_NEAR(in_cycles(now) / kLines, 4, 4 * 0.03);
}

// Poisson arrivals, constant service: a request waits rho / (2 (1 - rho)) of a service on average.
double waiting(double rho) { return rho / (2 * (1 - rho)); }

TEST(MemoryFormula, AnL2SliceWaitsAsMD1) {
  for (const double rho : {0.3, 0.6, 0.8}) {
    GpuSpec gpu = small_gpu();
    L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
    constexpr LineAddress place = 7;
    l2.write(only(place, 15), 0);
    std::mt19937 random(2);
    std::exponential_distribution<double> gap(rho / 2);  // a line takes 2 cycles
    double now = 1000;
    double waited = 0;
    constexpr int kRequests = 400'000;
    for (int i = 0; i < kRequests; ++i) {
      now += gap(random);
      waited += in_cycles(l2.read(only(place, 15), cycles(now)).slice_wait);
    }
    EXPECT_NEAR(waited / kRequests / 2, waiting(rho), waiting(rho) * 0.03) << rho;
  }
}

// Its bus has slots: an access waits half of one for the next on average, beyond the queue.
TEST(MemoryFormula, AnHbmChannelWaitsAsMD1) {
  for (const double rho : {0.3, 0.6, 0.8}) {
    Hbm memory(timing(), megahertz(1000));
    std::mt19937 random(3);
    std::exponential_distribution<double> gap(rho / 4);  // a line takes 4 cycles
    memory.read(0, 0, 4, 0);
    double now = 1000;
    double waited = 0;
    constexpr int kRequests = 400'000;
    for (int i = 0; i < kRequests; ++i) {
      now += gap(random);
      waited += in_cycles(memory.read(0, static_cast<std::uint32_t>(i) % 8, 4, cycles(now)).waited);
    }
    EXPECT_NEAR((waited / kRequests - 0.5) / 4, waiting(rho), waiting(rho) * 0.03) << rho;
  }
}

}  // namespace
}  // namespace weft
