// What collectives send, and in how many rounds, against formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/network/schedule_request.h"

namespace weft {
namespace {

TEST(CollectiveAlgorithmFormula, AllReduceSendsTwiceTheMessageLessOneRanksShare) {
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U, 16U, 17U}) {
    const std::int64_t bytes = 4096 * ranks;
    const std::int64_t expected = 2 * (ranks - 1) * (bytes / ranks);
    const ScheduleRequest r = request(Kind::all_reduce, ranks, bytes);
    EXPECT_THAT(totals(Algorithm::ring, r).sent_bytes, testing::Each(expected)) << ranks;
    EXPECT_THAT(totals(Algorithm::direct, r).sent_bytes, testing::Each(expected)) << ranks;
    if (std::has_single_bit(ranks)) {
      EXPECT_THAT(totals(Algorithm::halving_doubling, r).sent_bytes, testing::Each(expected)) << ranks;
    }
  }
}

TEST(CollectiveAlgorithmFormula, TreesSendTheMessageUpAndDownEachEdge) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    const ScheduleRequest r = request(Kind::all_reduce, ranks, 4096);
    EXPECT_EQ(sum(totals(Algorithm::tree, r).sent_bytes), 2 * 4096 * (ranks - 1)) << ranks;
    EXPECT_EQ(sum(totals(Algorithm::double_binary_tree, r).sent_bytes), 2 * 4096 * (ranks - 1)) << ranks;
    EXPECT_EQ(sum(totals(Algorithm::tree, request(Kind::broadcast, ranks, 4096)).sent_bytes), 4096 * (ranks - 1));
    EXPECT_EQ(sum(totals(Algorithm::ring, request(Kind::reduce, ranks, 4096)).sent_bytes), 4096 * (ranks - 1));
  }
}

TEST(CollectiveAlgorithmFormula, HalfAllReducesSendHalf) {
  for (const std::uint32_t ranks : {2U, 4U, 16U}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling}) {
      const std::int64_t others = 4096 * (ranks - 1);
      EXPECT_THAT(totals(algorithm, request(Kind::all_gather, ranks, 4096)).sent_bytes, testing::Each(others));
      EXPECT_THAT(totals(algorithm, request(Kind::reduce_scatter, ranks, 4096 * ranks)).sent_bytes,
                  testing::Each(others));
    }
    EXPECT_THAT(totals(Algorithm::direct, request(Kind::all_to_all, ranks, 4096 * ranks)).sent_bytes,
                testing::Each(4096 * (ranks - 1)));
  }
}

TEST(CollectiveAlgorithmFormula, AShiftSendsTheMessageOnceAtTheSameTime) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    ScheduleRequest r = request(Kind::shift, ranks, 4100);
    EXPECT_THAT(totals(Algorithm::direct, r).sent_bytes, testing::Each(4100)) << ranks;
    r.bytes = 128;
    r.pieces_per_chunk = 1;
    EXPECT_EQ(totals(Algorithm::direct, r).longest_chain, 1U) << ranks;
  }
}

TEST(CollectiveAlgorithmFormula, BetweenNodesOnlyAShareOfTheMessageGoes) {
  // Inside 2(g-1)/g, between the nodes 2(m-1)/m of a g-th.
  ScheduleRequest r = request(Kind::all_reduce, 12, 12 * 1024);
  r.ranks_per_node = 4;
  EXPECT_THAT(totals(Algorithm::hierarchical, r).sent_bytes, testing::Each(2 * 3 * 3072 + 2 * 2 * 1024));
}

// Messages one after the other, of a message that has one piece a chunk.
TEST(CollectiveAlgorithmFormula, RoundsFollowTheAlgorithm) {
  const auto rounds = [](Algorithm algorithm, Kind kind, std::uint32_t ranks) {
    ScheduleRequest r = request(kind, ranks, kind == Kind::barrier ? 0 : 128 * ranks);
    r.pieces_per_chunk = 1;
    if (algorithm == Algorithm::ring) r.bytes *= 32;  // its chunks are 4 KiB
    if (algorithm == Algorithm::ring) r.piece_bytes = 4096;
    if (algorithm == Algorithm::tree) r.bytes = 128;
    return totals(algorithm, r).longest_chain;
  };
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U, 16U}) {
    const auto log = static_cast<std::uint64_t>(std::bit_width(ranks - 1));
    EXPECT_EQ(rounds(Algorithm::ring, Kind::all_reduce, ranks), 2 * (ranks - 1)) << ranks;
    EXPECT_EQ(rounds(Algorithm::ring, Kind::reduce_scatter, ranks), ranks - 1) << ranks;
    EXPECT_EQ(rounds(Algorithm::direct, Kind::all_reduce, ranks), 2) << ranks;
    EXPECT_EQ(rounds(Algorithm::halving_doubling, Kind::barrier, ranks), log) << ranks;
    EXPECT_EQ(rounds(Algorithm::tree, Kind::all_reduce, ranks), 2 * log) << ranks;
    if (std::has_single_bit(ranks)) {
      EXPECT_EQ(rounds(Algorithm::halving_doubling, Kind::all_reduce, ranks), 2 * log) << ranks;
    }
  }
}

}  // namespace
}  // namespace weft
