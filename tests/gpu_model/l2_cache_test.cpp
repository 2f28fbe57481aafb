// The L2: latencies, sectors, secondary misses, capacity and write-back.
#include "gpu_model/l2_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

L2Cache cache(std::int64_t bytes = 64 << 10) {
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = bytes;
  return {gpu.l2, gpu.hbm, gpu.clock};
}

// One line, some sectors of it.
L2Cache::Lines only(LineAddress line, std::uint32_t sectors) {
  return {.first = line, .first_sectors = sectors, .last_sectors = sectors};
}

TEST(L2Cache, AMissTakesTheMemorysLatencyAndAHitTheSlices) {
  L2Cache l2 = cache();
  constexpr LineAddress place = 1000;
  const auto miss = l2.read(only(place, 15), n(10));
  EXPECT_EQ(miss.done, n(10 + 2 + 200));  // 128 B at 64 B a cycle
  EXPECT_EQ(miss.slice_wait, 0);
  EXPECT_EQ(miss.fetched_bytes, 128U);
  const auto hit = l2.read(only(place, 15), n(1000));
  EXPECT_EQ(hit.done, n(1000 + 2));
  EXPECT_EQ(hit.fetched_bytes, 0U);
  EXPECT_EQ(l2.statistics().hits, 1);
  EXPECT_EQ(l2.statistics().misses, 1);
}

TEST(L2Cache, EveryLineHitsOnceItWasRead) {
  for (const LineAddress line : {0U, 1U, 3U, 4U, 255U, 1U << 20}) {
    L2Cache l2 = cache();
    l2.read(only(line, 15), n(0));
    EXPECT_EQ(l2.read(only(line, 15), n(1000)).fetched_bytes, 0U) << line;
  }
}

// With tags of its own for communication, lines are looked up one by one: communication is silent here, so that is the
// only difference.
TEST(L2Cache, WholeChunksFareAsTheirLinesDoOneByOne) {
  L2Cache at_once = cache();
  L2Cache one_by_one = cache();
  one_by_one.make_private(true, false);
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  SubCycle now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += random() % (8 * kCycle);
    L2Cache::Lines lines{.first = static_cast<LineAddress>(random() % 2048),
                         .count = static_cast<std::uint32_t>(1 + random() % 8)};
    if (random() % 4 != 0) lines.first &= ~3U;
    if (random() % 4 == 0) lines.last_sectors = 1;
    const SubCycle spacing = random() % 8 == 0 ? n(5) : n(1);
    const bool reads = random() % 2 == 0;
    const L2Cache::Access a = reads ? at_once.read(lines, now, spacing) : at_once.write(lines, now, spacing);
    const L2Cache::Access b = reads ? one_by_one.read(lines, now, spacing) : one_by_one.write(lines, now, spacing);
    ASSERT_EQ(a.started, b.started) << i;
    ASSERT_EQ(a.done, b.done) << i;
    ASSERT_EQ(a.slice_wait, b.slice_wait) << i;
    ASSERT_EQ(a.fetched_bytes, b.fetched_bytes) << i;
  }
  EXPECT_EQ(at_once.statistics().hits, one_by_one.statistics().hits);
  EXPECT_EQ(at_once.hbm_statistics().write_bytes, one_by_one.hbm_statistics().write_bytes);
  EXPECT_EQ(at_once.hbm_statistics().row_hits, one_by_one.hbm_statistics().row_hits);
}

TEST(L2Cache, ASecondaryMissWaitsForTheFill) {
  L2Cache l2 = cache();
  constexpr LineAddress place = 5;
  const auto first = l2.read(only(place, 15), n(0));
  const auto second = l2.read(only(place, 15), n(50));
  EXPECT_EQ(second.done, first.done);
  EXPECT_EQ(second.fetched_bytes, 0U);
  EXPECT_EQ(l2.hbm_statistics().read_bytes, 128);
}

TEST(L2Cache, FetchesOnlyTheSectorsThatAreMissing) {
  L2Cache l2 = cache();
  constexpr LineAddress place = 9;
  EXPECT_EQ(l2.read(only(place, 0b0001), n(0)).fetched_bytes, 32U);
  EXPECT_EQ(l2.read(only(place, 0b0011), n(1000)).fetched_bytes, 32U);
  EXPECT_EQ(l2.read(only(place, 0b0011), n(2000)).fetched_bytes, 0U);
  EXPECT_EQ(l2.read(only(place, 0b1111), n(3000)).fetched_bytes, 64U);
}

TEST(L2Cache, WritesAllocateWithoutAFetch) {
  L2Cache l2 = cache();
  constexpr LineAddress place = 9;
  EXPECT_EQ(l2.write(only(place, 15), n(0)).done, n(2));
  EXPECT_EQ(l2.read(only(place, 15), n(100)).fetched_bytes, 0U);
  EXPECT_EQ(l2.hbm_statistics().read_bytes, 0);
}

TEST(L2Cache, ASliceServesOneLineAfterAnother) {
  L2Cache l2 = cache();
  constexpr LineAddress place = 9;
  l2.write(only(place, 15), n(0));
  for (int i = 1; i <= 5; ++i) {
    const auto access = l2.read(only(place, 15), n(0));
    EXPECT_EQ(access.slice_wait, n(2 * i));
    EXPECT_EQ(access.done, n(2 * i + 2));
  }
}

TEST(L2Cache, SpreadsConsecutiveLinesEvenlyAndStridesTolerably) {
  const L2Cache l2 = cache();
  for (const std::uint32_t stride : {1U, 4U, 64U}) {
    std::map<std::uint32_t, int> lines;
    for (std::uint32_t i = 0; i < 4096; ++i) ++lines[l2.place(i * stride).slice];
    ASSERT_EQ(lines.size(), 4U);
    for (const auto& [slice, count] : lines) {
      EXPECT_NEAR(count, 1024, stride == 1 ? 0 : 256) << "stride " << stride << ", slice " << slice;
    }
  }
}

TEST(L2Cache, PlacesAreDifferentForDifferentLines) {
  const L2Cache l2 = cache();
  std::set<std::pair<std::uint32_t, std::uint32_t>> owners;
  for (LineAddress line = 0; line < 20'000; ++line) {
    const L2Cache::Place place = l2.place(line);
    EXPECT_TRUE(owners.emplace(place.slice, place.line).second) << line;
  }
}

TEST(L2Cache, TheFarHalfOfTheChipCostsMore) {
  GpuSpec gpu = small_gpu();
  gpu.l2.far_latency_cycles = 50;
  L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
  for (LineAddress line = 0; line < 64; ++line) l2.read({.first = line}, n(0));
  for (LineAddress line = 0; line < 64; ++line) {
    const std::uint32_t half = l2.place(line).slice / 2;  // four slices
    const SubCycle now = n(100'000) + n(100) * line;
    EXPECT_EQ(l2.read({.first = line, .partition = half}, now).done, now + n(2));
    EXPECT_EQ(l2.read({.first = line, .partition = 1 - half}, now + n(50)).done, now + n(50 + 2 + 50));
  }
}

TEST(L2Cache, RequestsForLinesThatOthersWaitForAreServedWithThem) {
  for (const bool coalesces : {false, true}) {
    GpuSpec gpu = small_gpu();
    gpu.l2.bytes = 64 << 10;
    gpu.l2.coalesces_reads = coalesces;
    L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
    const L2Cache::Lines chunk{.first = 0, .count = 4};
    LineAddress other = 4;
    while (l2.place(other).slice != l2.place(0).slice) other += 4;
    const L2Cache::Lines next{.first = other, .count = 4};
    l2.read(next, n(0));
    const auto missed = l2.read(chunk, n(1));
    EXPECT_EQ(l2.read({.first = 1, .count = 2}, n(2)).done, missed.done);  // on its way
    // Four lines take eight cycles.
    EXPECT_EQ(l2.read(chunk, n(1000)).done, n(1008));
    EXPECT_EQ(l2.read(chunk, n(1002)).done, n(coalesces ? 1008 : 1016));
    EXPECT_EQ(l2.read({.first = 2}, n(1003)).done, n(coalesces ? 1008 : 1018));
    EXPECT_EQ(l2.read(next, n(1004)).done, n(coalesces ? 1016 : 1026));
    // Of parts of lines nothing is known.
    EXPECT_EQ(l2.read({.first = 2, .first_sectors = 1, .last_sectors = 1}, n(1005)).done,
              n(coalesces ? 1016 : 1026) + n(1) / 2);
    EXPECT_EQ(l2.read(chunk, n(2000)).done, n(2008));  // nobody waits any more
    l2.rest();
    EXPECT_EQ(l2.read(chunk, n(0)).done, n(8));
  }
}

TEST(L2Cache, ReadsAChunkAsOneRequestToMemory) {
  L2Cache l2 = cache();
  const auto four = l2.read({.first = 8, .count = 4}, n(10), n(1));  // 2 cycles each in the slice, 4 on the bus
  EXPECT_EQ(four.done, n(10 + 2 + 200 + 3 * 4));
  EXPECT_EQ(four.fetched_bytes, 512U);
  EXPECT_EQ(four.slice_wait, n(0 + 1 + 2 + 3));
  EXPECT_EQ(l2.hbm_statistics().row_misses, 1);
  EXPECT_EQ(l2.read({.first = 8, .count = 4, .first_sectors = 8, .last_sectors = 1}, n(1000)).done, n(1000 + 5));
}

// One set a slice: 16 lines in all, four of each slice in any 16 consecutive ones.
constexpr std::int64_t kTiny = 4 * 4 * 128;

TEST(L2Cache, EvictionWritesDirtySectorsBack) {
  L2Cache l2 = cache(kTiny);
  for (LineAddress line = 0; line < 16; ++line) {
    L2Cache::Lines lines = only(line, 0b0111);
    lines.communication = line >= 8;
    l2.write(lines, n(10 * line));
  }
  EXPECT_EQ(l2.hbm_statistics().write_bytes, 0);
  for (LineAddress line = 16; line < 32; ++line) l2.read(only(line, 15), n(10 * line));
  EXPECT_EQ(l2.hbm_statistics().write_bytes, 16 * 96);
  EXPECT_EQ(l2.communication_write_back_bytes(), 8 * 96);
  for (LineAddress line = 32; line < 48; ++line) l2.read(only(line, 15), n(10 * line));
  EXPECT_EQ(l2.hbm_statistics().write_bytes, 16 * 96);  // clean lines are dropped
}

TEST(L2Cache, KeepsWhatWasUsedLast) {
  L2Cache l2 = cache(kTiny);
  constexpr LineAddress kept = 0;
  std::int64_t fetched = 0;
  for (LineAddress line = 0; line < 400; ++line) {
    const SubCycle now = n(1000) * line;
    l2.read(only(line, 15), now);
    fetched += line == 0 ? 0 : l2.read(only(kept, 15), now + n(500)).fetched_bytes;
  }
  EXPECT_EQ(fetched, 0);
}

TEST(L2Cache, KeepsItsContentAtRest) {
  L2Cache l2 = cache();
  l2.write(only(3, 15), n(0));
  l2.rest();
  EXPECT_EQ(l2.read(only(3, 15), n(0)).done, n(2));
}

}  // namespace
}  // namespace weft
