// Blocks a unit of real launch shapes, by hand; and times of a clock domain.
#include "gpu_model/occupancy.h"

#include <gtest/gtest.h>

#include <random>

#include "gpu_model/clock_domain.h"
#include "sim/error.h"

namespace weft {
namespace {

// Compute capability 8.0: 64 K registers, 164 KiB of shared memory of which a block loses 1 KiB.
ComputeUnitSpec a100() {
  ComputeUnitSpec unit;
  unit.shared_memory_bytes = 164 << 10;
  unit.reserved_shared_memory_bytes = 1024;
  return unit;
}

std::uint32_t blocks(std::uint32_t threads, std::uint32_t registers, std::uint32_t shared_memory) {
  return blocks_per_unit(a100(), block_needs(a100(), threads, registers, shared_memory));
}

TEST(Occupancy, IsLimitedByThreads) {
  EXPECT_EQ(blocks(128, 32, 0), 16U);  // 2048 / 128
  EXPECT_EQ(blocks(1024, 32, 0), 2U);
  EXPECT_EQ(blocks(1000, 16, 0), 2U);  // a warp is whole
}

TEST(Occupancy, IsLimitedByBlockSlots) {
  EXPECT_EQ(blocks(32, 16, 0), 32U);
  EXPECT_EQ(blocks(1, 16, 0), 32U);
}

TEST(Occupancy, IsLimitedByRegisters) {
  EXPECT_EQ(blocks(256, 229, 0), 1U);  // 8 warps x 7424 = 59392 of 65536
  EXPECT_EQ(blocks(256, 128, 0), 2U);  // 8 x 4096 = 32768
  EXPECT_EQ(blocks(256, 129, 0), 1U);  // rounded up to 136 a thread
  EXPECT_EQ(blocks(1024, 65, 0), 0U);  // 32 x 2304 = 73728 do not fit
  EXPECT_EQ(blocks(512, 96, 0), 1U);   // 16 x 3072 = 49152
}

TEST(Occupancy, IsLimitedBySharedMemory) {
  EXPECT_EQ(blocks(256, 32, 72 << 10), 2U);   // 73 of 164 KiB
  EXPECT_EQ(blocks(128, 32, 163 << 10), 1U);  // with its reserve exactly all
  EXPECT_EQ(blocks(128, 32, (163 << 10) + 1), 0U);
  EXPECT_EQ(blocks(64, 32, 1), 32U);
}

TEST(Occupancy, OfKernelsThatWereProfiled) {
  EXPECT_EQ(blocks(256, 229, 72 << 10), 1U);  // a GEMM of 256x128 tiles
  EXPECT_EQ(blocks(544, 96, 87'568), 1U);     // NCCL's all-reduce
}

TEST(Occupancy, KnowsTheMostThatABlockCanHave) {
  const std::uint32_t bytes = most_shared_memory(a100());
  EXPECT_EQ(bytes, 163U << 10);
  EXPECT_EQ(blocks(128, 32, bytes), 1U);
  EXPECT_EQ(blocks(128, 32, bytes + 1), 0U);
  for (const std::uint32_t threads : {32U, 96U, 256U, 1000U, 1024U, 2048U}) {
    const std::uint32_t registers = most_registers_per_thread(a100(), threads);
    EXPECT_GE(blocks(threads, registers, 0), 1U) << threads;
    EXPECT_EQ(blocks(threads, registers + 1, 0), 0U) << threads;
  }
}

TEST(Occupancy, RoomIsWhatFitsBesideOthers) {
  UnitSlots slots(a100());
  const BlockNeeds big = block_needs(a100(), 544, 96, 87'568);
  const BlockNeeds small = block_needs(a100(), 256, 32, 0);
  EXPECT_EQ(slots.room(small), 8U);
  slots.take(big);
  EXPECT_EQ(slots.room(small), 1U);  // 65536 registers, less 17 x 3072, by 8 x 1024
  EXPECT_EQ(slots.room(big), 0U);
}

TEST(Occupancy, RefusesABlockThatFitsNowhere) {
  GpuSpec gpu;
  gpu.name = "A100";
  gpu.compute_unit = a100();
  EXPECT_EQ(needs_that_fit(gpu, "ring", 672, 96, 0).registers, 64512U);
  EXPECT_THROW(needs_that_fit(gpu, "ring", 704, 96, 0), InputError);  // 67584 registers of 65536
}

TEST(Occupancy, TakingAndReleasingIsExact) {
  UnitSlots slots(a100());
  const BlockNeeds big = block_needs(a100(), 544, 96, 87'568);
  const BlockNeeds small = block_needs(a100(), 256, 32, 0);
  slots.take(big);
  EXPECT_FALSE(slots.fits(big));
  std::uint32_t beside = 0;
  for (; slots.fits(small); ++beside) slots.take(small);
  EXPECT_EQ(beside, 1U);  // of 65536 registers 52224 are taken, a small block takes 8192
  slots.release(big);
  EXPECT_TRUE(slots.fits(big));
}

// As beside blocks of the probe on H200, which have 0, 42 or 87 KB: an elementwise kernel's 16 blocks want 16 KiB, an
// attention's three 213.
TEST(Occupancy, ACarveoutStaysUntilTheUnitIsEmpty) {
  ComputeUnitSpec hopper = a100();
  hopper.shared_memory_bytes = 228 << 10;
  hopper.shared_memory_carveouts_KiB = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
  const BlockNeeds elementwise = block_needs(hopper, 128, 32, 0);
  const BlockNeeds attention = block_needs(hopper, 128, 48, 71'680);
  EXPECT_EQ(elementwise.carveout, 16U << 10);
  EXPECT_EQ(attention.carveout, 228U << 10);
  EXPECT_EQ(blocks_per_unit(hopper, attention), 3U);
  for (const std::uint32_t shared : {0U, 42'000U, 87'568U}) {
    UnitSlots slots(hopper);
    const BlockNeeds resident = block_needs(hopper, 512, 96, shared);
    slots.take(resident);
    EXPECT_EQ(slots.room(elementwise), shared == 0 ? 0U : 4U);
    EXPECT_EQ(slots.fits(elementwise), shared != 0);
    EXPECT_EQ(slots.room(attention), 0U);
    EXPECT_FALSE(slots.fits(attention));
    slots.release(resident);
    EXPECT_EQ(slots.room(attention), 3U);
  }
}

TEST(ClockDomain, CyclesGoToTimeAndBack) {
  std::mt19937_64 random(3);
  for (const double mhz : {1000.0, 1410.0, 1830.0}) {
    const ClockDomain clock(megahertz(mhz));
    for (int i = 0; i < 1000; ++i) {
      const SubCycle t = cycles(static_cast<std::int64_t>(random() >> 33));  // up to 2^31: over a second
      const SubCycle back = clock.to_subcycles(clock.to_time(t));
      EXPECT_LE(std::abs(back - t), 2);  // a femtosecond is less than a subcycle
    }
  }
}

TEST(ClockDomain, TimesAreThoseOfTheExactClock) {
  const ClockDomain clock(megahertz(1830));
  const Clock exact(megahertz(1830));
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1'830'000'000}}) {
    const auto off = clock.to_time(cycles(n)).count() - exact.edge(n).count();
    EXPECT_LE(std::abs(off), 1 + exact.edge(n).count() / 100'000'000'000'000) << n;  // 1e-14
  }
}

TEST(ClockDomain, AWholeNumberOfCyclesStaysOne) {
  for (const double mhz : {500.0, 1000.0, 2000.0}) {
    const ClockDomain clock(megahertz(mhz));
    for (std::int64_t ns = 2; ns < 1'000'000'000; ns = ns * 3 + 2) {
      const auto whole = static_cast<std::int64_t>(static_cast<double>(ns) * mhz / 1000);
      EXPECT_EQ(tick_at_or_after(clock.to_subcycles(nanoseconds(static_cast<double>(ns)))), whole) << ns;
    }
  }
  EXPECT_EQ(ClockDomain(megahertz(1000)).to_subcycles(nanoseconds(7)), cycles(std::int64_t{7}));
}

}  // namespace
}  // namespace weft
