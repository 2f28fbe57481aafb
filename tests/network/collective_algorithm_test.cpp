// Every collective by every algorithm, carried out with integers.
#include "network/collective_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "network/schedule_check.h"
#include "sim/error.h"
#include "tests/network/schedule_request.h"

namespace weft {

void PrintTo(CollectiveAlgorithm algorithm, std::ostream* out) { *out << to_string(algorithm); }

namespace {

constexpr std::array kKinds{Kind::all_reduce, Kind::all_gather,   Kind::reduce_scatter, Kind::broadcast,
                            Kind::reduce,     Kind::all_to_all,   Kind::barrier,        Kind::gather,
                            Kind::scatter,    Kind::send_receive, Kind::shift};

std::vector<std::uint32_t> node_sizes(Algorithm algorithm, std::uint32_t ranks) {
  if (algorithm != Algorithm::hierarchical && algorithm != Algorithm::double_binary_tree &&
      algorithm != Algorithm::direct)
    return {1};
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t s = 1; s <= ranks; ++s) {
    if (ranks % s == 0) sizes.push_back(s);
  }
  return sizes;
}

void check_size(Algorithm algorithm, ScheduleRequest r, std::int64_t elements, std::uint32_t variant) {
  r.element_bytes = variant % 2 == 0 ? 4 : 1;
  r.bytes = r.kind == Kind::barrier ? 0 : elements * r.element_bytes;
  r.root = variant % r.ranks;
  r.distance = 1 + variant % (r.ranks - 1);
  r.channels_to_peer = 1 + variant % 3;
  r.alternate_directions = variant % 4 < 2;
  r.pieces_per_chunk = 1 + variant % 2;
  r.piece_bytes = variant % 4 < 2 ? 128 : 512;  // also steps that carry several parts
  const bool rings = algorithm == Algorithm::ring || algorithm == Algorithm::hierarchical;
  const bool pairs = algorithm == Algorithm::direct && has_block_a_peer(r.kind, r.ranks, r.channels);
  const std::uint32_t slots = rings ? r.pieces_per_chunk + 1 : pairs ? r.pieces_per_chunk : 1;
  SCOPED_TRACE(testing::Message() << to_string(r.kind) << ", " << r.ranks << " ranks, " << r.channels << " channels, "
                                  << r.bytes << " B of " << r.element_bytes << ", root " << r.root << ", "
                                  << r.ranks_per_node << " a node, " << slots << " slots");
  ASSERT_NO_THROW((void)check_schedule(*make_schedule(algorithm, r), r, slots));
}

// What skip_idle leaves out is idle, and who goes on from there comes to the end.
void check_skipping(const CollectiveSchedule& schedule, std::uint32_t rank, std::uint32_t block, std::uint32_t group) {
  const std::uint64_t steps = schedule.steps(rank, block, group);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t next = schedule.skip_idle(rank, block, group, i);
    ASSERT_GE(next, i);
    for (std::uint64_t skipped = i; skipped < std::min(next, steps); ++skipped) {
      ASSERT_TRUE(schedule.step(rank, block, group, skipped).idle()) << skipped << " from " << i;
    }
  }
}

// sends_to, is_waited_for and skip_idle against what the steps say.
void check_summary(const CollectiveSchedule& schedule) {
  for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (std::uint32_t block = 0; block < schedule.blocks(rank); ++block) {
      for (std::uint32_t group = 0; group < schedule.groups(rank, block); ++group) {
        EXPECT_THAT(schedule.sends_to(rank, block, group),
                    testing::IsSupersetOf(schedule.CollectiveSchedule::sends_to(rank, block, group)));
        EXPECT_GE(schedule.is_waited_for(rank, block, group),
                  schedule.CollectiveSchedule::is_waited_for(rank, block, group));
        check_skipping(schedule, rank, block, group);
      }
    }
  }
}

class AnyAlgorithm : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, AnyAlgorithm, testing::ValuesIn(kCollectiveAlgorithms),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

TEST_P(AnyAlgorithm, ComputesItsCollectives) {
  const std::array<std::int64_t, 4> sizes{1, 7, 331, 1025};
  for (const Kind kind : kKinds) {
    if (!supports(GetParam(), kind)) continue;
    for (std::uint32_t ranks = 2; ranks <= (kind == Kind::send_receive ? 2U : 17U); ++ranks) {
      for (const std::uint32_t node : node_sizes(GetParam(), ranks)) {
        for (std::uint32_t channels = 1; channels <= 3; ++channels) {
          ScheduleRequest r = request(kind, ranks, 0);
          r.channels = channels;
          r.ranks_per_node = node;
          for (std::size_t s = 0; s < sizes.size(); ++s) {
            check_size(GetParam(), r, sizes.at(s), ranks + channels + static_cast<std::uint32_t>(s));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(AnyAlgorithm, KnowsItsConnectionsWithoutItsSteps) {
  for (const Kind kind : kKinds) {
    if (!supports(GetParam(), kind)) continue;
    for (const std::uint32_t ranks : {2U, 5U, 8U}) {
      if (kind == Kind::send_receive && ranks != 2) continue;
      ScheduleRequest r = request(kind, ranks, kind == Kind::barrier ? 0 : 4 * 1025);
      r.channels = 2;
      r.root = ranks - 1;
      r.ranks_per_node = ranks % 4 == 0 ? 4 : 1;
      r.alternate_directions = true;
      SCOPED_TRACE(testing::Message() << to_string(kind) << ", " << ranks << " ranks");
      check_summary(*make_schedule(GetParam(), r));
    }
  }
}

// Eight ranks of one node and four of another: a chain in each, and one message each way between them.
TEST(CollectiveAlgorithm, DoubleBinaryTreesJoinOneRankOfUnequalNodes) {
  ScheduleRequest r = request(Kind::all_reduce, 12, 4 * 1025);
  r.channels = 16;
  r.first_ranks = {0, 8};
  const auto schedule = make_schedule(CollectiveAlgorithm::double_binary_tree, r);
  EXPECT_NO_THROW((void)check_schedule(*schedule, r, 3));
  for (std::uint32_t block = 0; block < 16; ++block) {
    std::set<std::uint32_t> senders;
    for (std::uint32_t rank = 0; rank < 12; ++rank) {
      for (const std::uint32_t group : {0U, 1U}) {
        for (const std::uint32_t to : schedule->sends_to(rank, block, group)) {
          if ((rank < 8) != (to < 8)) senders.insert(rank);
        }
      }
    }
    EXPECT_EQ(senders, (std::set<std::uint32_t>{block / 2, 8 + block / 2 % 4})) << block;
  }
}

// As NCCL orders them: the places of the own node, then those of the next one from the own place on.
// NCCL's channels of sends: peers of one node begin far apart, those of another node meet on the same ones.
TEST(CollectiveAlgorithm, BlocksServeThePeersThatMeetOnTheirChannel) {
  ScheduleRequest r = request(Kind::all_to_all, 4, 4 * 128);
  r.channels = 8;
  r.channels_to_peer = 2;
  auto schedule = make_schedule(Algorithm::direct, r);
  ASSERT_EQ(schedule->blocks(1), 8U);  // rounds begin on channels 0, 4, 2, 6
  const auto to = [&](std::uint32_t block) { return schedule->sends_to(1, block, 0); };
  EXPECT_THAT(to(0), testing::IsEmpty());  // what stays
  EXPECT_THAT(to(3), testing::ElementsAre(3U));
  EXPECT_THAT(to(4), testing::ElementsAre(2U));
  EXPECT_THAT(to(6), testing::ElementsAre(0U));
  EXPECT_EQ(schedule->groups(1, 4), 2U);  // sends and receives
  r.channels_to_peer = 4;
  schedule = make_schedule(Algorithm::direct, r);
  EXPECT_EQ(schedule->groups(1, 4), 4U);  // rounds 1 and 2

  r = request(Kind::all_to_all, 6, 6 * 128);
  r.ranks_per_node = 3;
  r.channels = 4;
  schedule = make_schedule(Algorithm::direct, r);
  ASSERT_EQ(schedule->blocks(1), 2U);
  EXPECT_EQ(schedule->groups(1, 0), 6U);
  EXPECT_THAT(schedule->sends_to(1, 0, 2), testing::ElementsAre(2U));
  EXPECT_THAT(schedule->sends_to(1, 0, 4), testing::ElementsAre(0U));
  EXPECT_THAT(schedule->sends_to(1, 1, 0), testing::ElementsAre(4U));
  EXPECT_THAT(schedule->sends_to(5, 1, 4), testing::ElementsAre(1U));
}

// Beyond eight at a time, warps serve one peer after another.
TEST(CollectiveAlgorithm, ABlockServesEightPeersAtATime) {
  ScheduleRequest r = request(Kind::all_to_all, 10, 10 * 128);
  r.channels = 1;
  const auto schedule = make_schedule(Algorithm::direct, r);
  ASSERT_EQ(schedule->blocks(0), 1U);
  EXPECT_EQ(schedule->groups(0, 0), 16U);
  EXPECT_THAT(schedule->sends_to(0, 0, 0), testing::ElementsAre(8U));
  EXPECT_THAT(schedule->sends_to(0, 0, 2), testing::ElementsAre(1U, 9U));
}

TEST(CollectiveAlgorithm, EveryCollectiveHasAUsualOne) {
  for (const Kind kind : kKinds) EXPECT_TRUE(supports(usual_algorithm(kind), kind)) << to_string(kind);
}

TEST(CollectiveAlgorithm, RefusesWhatItCannotDo) {
  const auto refused = [](Algorithm algorithm, const ScheduleRequest& r, const char* message) {
    try {
      (void)make_schedule(algorithm, r);
      ADD_FAILURE() << message;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message));
    }
  };
  refused(Algorithm::tree, request(Kind::all_gather, 4, 4), "expected ring or direct or halving_doubling, got tree");
  refused(Algorithm::ring, request(Kind::all_reduce, 1, 4), "expected at least 2 ranks, got 1");
  refused(Algorithm::direct, request(Kind::send_receive, 3, 4), "expected exactly 2 ranks, got 3");
  refused(Algorithm::ring, request(Kind::all_reduce, 4, 5), "expected whole elements of 4 B, got 5 B");
  ScheduleRequest r = request(Kind::broadcast, 4, 4);
  r.root = 4;
  refused(Algorithm::ring, r, "expected a root below 4, got 4");
  r = request(Kind::all_reduce, 6, 4);
  r.ranks_per_node = 4;
  refused(Algorithm::hierarchical, r, "6 in all, got 4 a node");
  r.ranks_per_node = 0;  // 4 and 2
  refused(Algorithm::hierarchical, r, "6 in all, got nodes that differ in them");
}

TEST(CollectiveAlgorithm, AShiftGoesAsFarAsItSays) {
  ScheduleRequest r = request(Kind::shift, 5, 4100);
  for (r.distance = 1; r.distance < 5; ++r.distance) {
    const auto schedule = make_schedule(Algorithm::direct, r);
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      EXPECT_THAT(schedule->sends_to(rank, 0, 0), testing::ElementsAre((rank + r.distance) % 5));
    }
    EXPECT_THAT(totals(Algorithm::direct, r).sent_bytes, testing::Each(4100));
  }
  for (const std::uint32_t distance : {0U, 5U}) {
    r.distance = distance;
    EXPECT_THROW(static_cast<void>(make_schedule(Algorithm::direct, r)), InputError);
  }
}

// Up a pipeline and down it: the last stage sends nothing, the first one gets nothing.
TEST(CollectiveAlgorithm, AShiftMayBeginAndEnd) {
  ScheduleRequest r = request(Kind::shift, 4, 4100);
  for (const auto& [distance, first] : {std::pair{1U, 0U}, {3U, 3U}}) {
    r.distance = distance;
    r.first = first;
    const std::uint32_t last = 3 - first;
    const auto schedule = make_schedule(Algorithm::direct, r);
    EXPECT_THAT(schedule->sends_to(last, 0, 0), testing::IsEmpty());
    EXPECT_EQ(schedule->input_bytes(last), 0);
    EXPECT_EQ(schedule->output_bytes(first), 0);
    EXPECT_EQ(sum(totals(Algorithm::direct, r).sent_bytes), 3 * 4100);
    EXPECT_EQ(totals(Algorithm::direct, r).sent_bytes[last], 0);
  }
  r.first = 4;
  EXPECT_THROW(static_cast<void>(make_schedule(Algorithm::direct, r)), InputError);
}

TEST(CollectiveAlgorithm, DirectHasABlockForEachPeerWhereThereAreEnough) {
  for (const std::uint32_t ranks : {2U, 8U, 9U, 17U}) {
    ScheduleRequest r = request(Kind::all_reduce, ranks, 4 * 10'007);
    r.channels = 2 * ranks + 1;
    const auto schedule = make_schedule(Algorithm::direct, r);
    EXPECT_EQ(schedule->blocks(0), 2 * ranks);
    EXPECT_EQ(schedule->groups(0, 0), 1U);
    for (std::uint32_t block = 0; block < 2 * ranks; ++block) {
      const bool own = block < 2;  // of each channel, one block has no peer
      EXPECT_EQ(schedule->sends_to(0, block, 0).size(), own ? 0U : 1U);
    }
    EXPECT_EQ(sum(check_schedule(*schedule, r, r.pieces_per_chunk).sent_bytes), 2 * (ranks - 1) * r.bytes) << ranks;
  }
}

TEST(CollectiveAlgorithm, FoldedRanksAddTwoRounds) {
  ScheduleRequest r = request(Kind::all_reduce, 5, 4 * 128);
  r.pieces_per_chunk = 1;
  EXPECT_EQ(totals(Algorithm::halving_doubling, r).longest_chain, 2U * 2 + 2);
}

// 4096 parts of 256 B, of which a piece holds 16: 12 rounds each way, not 4095 exchanges.
TEST(CollectiveAlgorithm, HalvingDoublingOfShortPartsTakesAStepForAPieceNotForAPart) {
  ScheduleRequest r = request(Kind::all_reduce, 4096, std::int64_t{1} << 20);
  r.pieces_per_chunk = 1;
  r.piece_bytes = 4096;
  const auto schedule = make_schedule(Algorithm::halving_doubling, r);
  const std::uint64_t steps = schedule->steps(5, 0, 0);
  EXPECT_EQ(steps, 2U * (4 + 255));
  std::int64_t sent = 0;
  for (std::uint64_t i = 0; i < steps; ++i) sent += schedule->step(5, 0, 0, i).bytes;
  EXPECT_EQ(sent, 2 * 4095 * 256);
}

// Nothing is built in advance: any step of a group of 4096 ranks is there at once.
TEST(CollectiveAlgorithm, StepsOfThousandsOfRanksCostNothingInAdvance) {
  for (const Algorithm algorithm : kCollectiveAlgorithms) {
    ScheduleRequest r = request(Kind::all_reduce, 4096, std::int64_t{1} << 36);
    r.ranks_per_node = 8;
    const auto schedule = make_schedule(algorithm, r);
    std::int64_t moved = 0;
    for (const std::uint32_t rank : {0U, 1U, 2047U, 4095U}) {
      const std::uint64_t steps = schedule->steps(rank, 0, 0);
      EXPECT_GT(steps, std::uint64_t{1} << 20) << to_string(algorithm);
      for (std::uint64_t i = 0; i < 1000; ++i) moved += schedule->step(rank, 0, 0, i * (steps / 1000)).bytes;
    }
    EXPECT_GT(moved, 0) << to_string(algorithm);
  }
}

}  // namespace
}  // namespace weft
