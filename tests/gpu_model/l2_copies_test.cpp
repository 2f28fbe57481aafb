// The L2's halves: lines of the other half that take a second place.
#include <gtest/gtest.h>

#include "gpu_model/l2_cache.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

class L2CacheWithCopies : public testing::Test {
 protected:
  static constexpr std::int64_t kBytes = 64 << 10;
  static constexpr LineAddress kLines = kBytes / 128 * 3 / 4;  // three quarters of the cache

  static GpuSpec gpu(bool copies) {
    GpuSpec gpu = small_gpu();
    gpu.l2.bytes = kBytes;
    gpu.l2.far_latency_cycles = 50;
    gpu.l2.far_copies = copies;
    gpu.hbm.bytes = 16 << 20;  // as much as so few sets tell apart
    return gpu;
  }
  // The lines twice, each written by a unit of the half in which it lives, or of the other one.
  static std::int64_t written_back(L2Cache& l2, bool from_far) {
    for (int pass = 0; pass < 2; ++pass) {
      for (LineAddress line = 0; line < kLines; ++line) {
        const std::uint32_t home = l2.place(line).slice >= 2 ? 1 : 0;
        l2.write({.first = line, .partition = from_far ? 1 - home : home}, n(0));
      }
    }
    return l2.hbm_statistics().write_bytes;
  }
};

TEST_F(L2CacheWithCopies, WhatIsWrittenFromFarTakesTwoPlaces) {
  for (const bool copies : {false, true}) {
    for (const bool from_far : {false, true}) {
      const GpuSpec spec = gpu(copies);
      L2Cache l2(spec.l2, spec.hbm, spec.clock);
      if (copies && from_far) {
        EXPECT_GT(written_back(l2, from_far), kLines * 128 / 4);
      } else {
        EXPECT_EQ(written_back(l2, from_far), 0);
      }
    }
  }
}

// Also where the L2 is told what it holds. As many lines are written from far as not, where it is not known by whom.
TEST_F(L2CacheWithCopies, WhatItIsToldToBeWrittenTakesAsManyPlaces) {
  for (const bool copies : {false, true}) {
    const GpuSpec spec = gpu(copies);
    L2Cache l2(spec.l2, spec.hbm, spec.clock);
    std::int64_t written_back = 0;
    for (int pass = 0; pass < 2; ++pass) {
      written_back +=
          l2.touch({.first = 0, .count = static_cast<std::uint32_t>(kLines)}, L2Cache::Use::write).written_back_bytes;
    }
    if (copies) {
      EXPECT_GT(written_back, kLines * 128 / 16);
    } else {
      EXPECT_EQ(written_back, 0);
    }
    EXPECT_EQ(l2.hbm_statistics().write_bytes, 0);
  }
}

TEST_F(L2CacheWithCopies, WhatBothHalvesReadTakesOnePlace) {
  const GpuSpec spec = gpu(true);
  L2Cache l2(spec.l2, spec.hbm, spec.clock);
  for (int pass = 0; pass < 2; ++pass) {
    for (LineAddress line = 0; line < kLines; ++line) {
      for (const std::uint32_t half : {0U, 1U}) l2.read({.first = line, .partition = half}, n(0));
    }
  }
  EXPECT_EQ(l2.hbm_statistics().read_bytes, kLines * 128);
}

TEST_F(L2CacheWithCopies, WhatLivesInTheOtherHalfIsFartherEachTime) {
  const GpuSpec spec = gpu(true);
  L2Cache l2(spec.l2, spec.hbm, spec.clock);
  LineAddress line = 0;
  while (l2.place(line).slice < 2) ++line;
  const L2Cache::Lines from_far{.first = line, .partition = 0};
  EXPECT_EQ(l2.read(from_far, n(0)).done, n(2 + 200 + 50));
  EXPECT_EQ(l2.read(from_far, n(1000)).done, n(1000 + 2 + 50));
}

}  // namespace
}  // namespace weft
