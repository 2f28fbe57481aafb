// The ring cuts messages as NCCL's Simple protocol does: chunks of at most two slices of 1 MiB, at least 4 KiB.
#include <gtest/gtest.h>

#include <vector>

#include "network/collective_algorithm.h"
#include "network/schedule_check.h"

namespace weft {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

std::unique_ptr<CollectiveSchedule> ring(CollectiveKind kind, std::int64_t bytes) {
  return make_schedule(CollectiveAlgorithm::ring, {.kind = kind, .bytes = bytes, .ranks = 8, .channels = 16});
}

// Rank 2 of 8 sends chunk 1 first, adds to 0, 7, ... 3, finishes 2, and passes on 1, 0, ... 3.
TEST(RingCollective, AllReduceGoesTwiceRoundTheRing) {
  const auto schedule = ring(CollectiveKind::all_reduce, 256 * kMiB);
  ASSERT_EQ(schedule->steps(2, 5, 0), 15U * 2);
  for (std::uint32_t visit = 0; visit < 15; ++visit) {
    for (std::uint32_t slice = 0; slice < 2; ++slice) {
      const ScheduleStep step = schedule->step(2, 5, 0, visit * 2 + slice);
      const std::int64_t offset = (5 * 8 + (1 + 16 - visit) % 8) * 2 * kMiB + slice * kMiB;
      EXPECT_EQ(step.bytes, kMiB);
      EXPECT_EQ(step.receive_count, visit > 0 ? 1 : 0);
      EXPECT_EQ(step.send_count, visit < 14 ? 1 : 0);
      EXPECT_EQ(step.source, visit < 8 ? ScheduleBuffer::input : ScheduleBuffer::none);
      EXPECT_EQ(step.destination, visit >= 7 ? ScheduleBuffer::output : ScheduleBuffer::none);
      if (visit < 8) {
        EXPECT_EQ(step.source_offset, offset);
      }
      if (visit >= 7) {
        EXPECT_EQ(step.destination_offset, offset);
      }
    }
  }
}

TEST(RingCollective, SmallMessagesAreCutIntoChunksOf4KiBAndOneSlice) {
  const auto schedule = ring(CollectiveKind::all_reduce, 10 * kKiB);
  std::int64_t sent = 0;
  for (std::uint32_t block = 0; block < 16; ++block) {
    for (std::uint64_t i = 0; i < schedule->steps(0, block, 0); ++i) {
      const ScheduleStep step = schedule->step(0, block, 0, i);
      EXPECT_TRUE(step.idle() || step.bytes == 4 * kKiB || step.bytes == 2 * kKiB) << step.bytes;
      EXPECT_TRUE(step.idle() || block == 0);
      sent += step.bytes * step.send_count;
    }
  }
  EXPECT_EQ(sent, 2 * 10 * kKiB - 4 * kKiB - 4 * kKiB);  // of 4, 4 and 2 KiB; rank 0 sends the first two only once
}

TEST(RingCollective, LeavesOutChunksThatAShortMessageDoesNotHave) {
  const std::uint32_t ranks = 4096;
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, {.bytes = kMiB, .ranks = ranks, .channels = 2});
  const std::uint64_t steps = schedule->steps(7, 0, 0);
  std::uint64_t visited = 0;
  std::uint64_t busy = 0;
  for (std::uint64_t i = schedule->skip_idle(7, 0, 0, 0); i < steps; i = schedule->skip_idle(7, 0, 0, i + 1)) {
    ++visited;
    busy += schedule->step(7, 0, 0, i).idle() ? 0 : 1;
  }
  EXPECT_EQ(busy, 2U * 256 - 1);     // chunks of 4 KiB, twice round, but its own that comes back summed
  EXPECT_LE(visited, 2 * busy + 2);  // of two slices
  EXPECT_GE(schedule->skip_idle(7, 1, 0, 0), steps);
}

TEST(RingCollective, LastLoopOfALongMessageIsCutIntoSmallerChunks) {
  const auto schedule = ring(CollectiveKind::all_reduce, 256 * kMiB + 128 * 8 * kKiB);
  EXPECT_EQ(schedule->steps(0, 0, 0), 2U * 15 * 2);
  const ScheduleStep step = schedule->step(0, 1, 0, 15 * 2);
  EXPECT_EQ(step.bytes, 8 * kKiB);
  EXPECT_EQ(step.source_offset, 256 * kMiB + (8 + 7) * 8 * kKiB);
}

TEST(RingCollective, OddChannelsGoTheOtherWayIfAsked) {
  const auto schedule = make_schedule(CollectiveAlgorithm::ring,
                                      {.bytes = kMiB, .ranks = 8, .channels = 2, .alternate_directions = true});
  EXPECT_EQ(schedule->step(3, 0, 0, 0).sends_to[0], 4U);
  EXPECT_EQ(schedule->step(3, 1, 0, 0).sends_to[0], 2U);
}

ScheduleRequest cut(ChunkOrder order, std::int64_t unit, std::int64_t piece, std::int64_t bytes) {
  ScheduleRequest request{.bytes = bytes, .ranks = 8, .channels = 24, .piece_bytes = piece, .pieces_per_chunk = 1};
  request.chunk_unit = unit;
  request.chunk_order = order;
  return request;
}

// Bytes that rank 0 passes on or keeps, by block and visit: 15 of them.
std::vector<std::int64_t> visits(const CollectiveSchedule& schedule, std::uint32_t block) {
  std::vector<std::int64_t> bytes;
  for (std::uint32_t visit = 0; visit < 15; ++visit) bytes.push_back(schedule.step(0, block, 0, visit).bytes);
  return bytes;
}

// LL128's chunks are multiples of 640 threads of 30 B: 4 MiB are 109.2 chunks of 38400 B, where 24 channels have 192.
TEST(RingCollective, CutByPartAllChannelsLackTheLastParts) {
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, cut(ChunkOrder::by_part, 19'200, 576'000, 4 * kMiB));
  for (const std::uint32_t block : {0U, 23U}) {
    const std::vector<std::int64_t> bytes = visits(*schedule, block);
    std::int64_t full = 0;
    std::int64_t none = 0;
    for (const std::int64_t b : bytes) {
      full += b == 38'400 ? 1 : 0;
      none += b == 0 ? 1 : 0;
    }
    EXPECT_GE(none, 2 * 3 - 1) << block;  // parts 5, 6 and 7, each visited twice but for one
    EXPECT_GE(full, 2 * 4 - 1) << block;
  }
}

TEST(RingCollective, CutByLoopTheLastChannelsHaveNothing) {
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, cut(ChunkOrder::by_loop, 19'200, 576'000, 4 * kMiB));
  EXPECT_EQ(visits(*schedule, 0), std::vector<std::int64_t>(15, 38'400));
  EXPECT_EQ(visits(*schedule, 23), std::vector<std::int64_t>(15, 0));
}

// Shares of 22 units of 8 KiB: 23 of them and a last one of 6 units; chunks are an eighth of a share.
TEST(RingCollective, CutByChannelEachHasAShareOfItsOwn) {
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, cut(ChunkOrder::by_channel, 8'192, 576'000, 4 * kMiB));
  EXPECT_EQ(visits(*schedule, 0), std::vector<std::int64_t>(15, 22 * 1'024));
  EXPECT_EQ(schedule->step(0, 22, 0, 0).source_offset, (22 * 22 + 22 * 7 / 8) * 8'192 + 22 * 7 % 8 * 1'024);
  EXPECT_EQ(visits(*schedule, 23), std::vector<std::int64_t>(15, 6 * 1'024));
}

TEST(RingCollective, EachWayToCutSumsEveryElementOnce) {
  for (const ChunkOrder order : {ChunkOrder::by_loop, ChunkOrder::by_part, ChunkOrder::by_channel}) {
    for (const std::int64_t bytes : {4, 1'000, 5'000, 20'000}) {
      ScheduleRequest request{.bytes = bytes, .ranks = 3, .channels = 4, .piece_bytes = 256, .pieces_per_chunk = 2};
      request.chunk_unit = 384;
      request.chunk_order = order;
      const auto schedule = make_schedule(CollectiveAlgorithm::ring, request);
      EXPECT_NO_THROW(static_cast<void>(check_schedule(*schedule, request, 3))) << bytes;
    }
  }
}

}  // namespace
}  // namespace weft
