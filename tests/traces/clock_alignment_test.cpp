#include "traces/clock_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kUs = 1'000'000'000;  // fs

struct Ended {
  std::int64_t end_us;
  std::vector<std::uint32_t> group;
};

// A rank whose clock is ahead, with collectives that end at these times of the others' clocks.
TraceRank rank(std::uint32_t number, std::int64_t ahead_us, const std::vector<Ended>& collectives) {
  TraceRank rank;
  rank.rank = number;
  for (const Ended& ended : collectives) {
    TraceOp op;
    op.kind = TraceOpKind::collective;
    op.start = op.issued = Time((ended.end_us - 10 + ahead_us) * kUs);
    op.duration = Time(10 * kUs);
    op.collective.emplace();
    op.collective->group_ranks = ended.group;
    op.collective->group_size = static_cast<std::uint32_t>(ended.group.size());
    rank.ops.push_back(std::move(op));
  }
  return rank;
}

std::int64_t end_us(const Trace& trace, std::size_t rank, std::size_t op) {
  const TraceOp& o = trace.ranks[rank].ops[op];
  return (o.start + o.duration).count() / kUs;
}

TEST(ClockAlignment, CollectivesEndTogetherAfterwards) {
  Trace trace;
  trace.world_size = 3;
  const std::vector<std::uint32_t> all{0, 1, 2};
  for (std::uint32_t r = 0; r < 3; ++r)
    trace.ranks.push_back(rank(r, r == 1 ? 500 : 0, {{20, all}, {30 + r, all}, {40, all}}));
  std::vector<std::string> notes;
  const ClockAlignment alignment = align_clocks(trace, notes);
  EXPECT_TRUE(alignment.moved);
  EXPECT_EQ(alignment.earlier[1].count(), 500 * kUs);
  EXPECT_EQ(alignment.earlier[2].count(), 0);
  EXPECT_EQ(alignment.most.count(), 500 * kUs);
  EXPECT_EQ(trace.ranks[1].clock_moved.count(), -500 * kUs);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("up to 500.0 us")));
  EXPECT_EQ(end_us(trace, 1, 0), end_us(trace, 0, 0));
  EXPECT_EQ(end_us(trace, 1, 1), end_us(trace, 0, 1) + 1);  // what is really later stays so
  EXPECT_EQ(trace.ranks[0].ops[0].start.count(), 0);
}

// Ranks 0 and 3 never meet.
TEST(ClockAlignment, ClocksAreJoinedByWayOfOthers) {
  Trace trace;
  trace.world_size = 4;
  trace.ranks = {rank(0, 0, {{20, {0, 1}}}), rank(1, 100, {{20, {0, 1}}, {40, {1, 2}}}),
                 rank(2, 2000, {{40, {1, 2}}, {60, {2, 3}}}), rank(3, -7, {{60, {2, 3}}})};
  std::vector<std::string> notes;
  align_clocks(trace, notes);
  EXPECT_EQ(end_us(trace, 1, 1) - end_us(trace, 0, 0), 20);
  EXPECT_EQ(end_us(trace, 2, 0), end_us(trace, 1, 1));
  EXPECT_EQ(end_us(trace, 3, 0) - end_us(trace, 0, 0), 40);
}

TEST(ClockAlignment, ClocksWithinTheToleranceStay) {
  Trace trace;
  trace.world_size = 2;
  trace.ranks = {rank(0, 30, {{20, {0, 1}}}), rank(1, 39, {{20, {0, 1}}})};
  std::vector<std::string> notes;
  EXPECT_FALSE(align_clocks(trace, notes, microseconds(10)).moved);
  EXPECT_EQ(end_us(trace, 1, 0), 59);
  EXPECT_TRUE(align_clocks(trace, notes, microseconds(9)).moved);
}

// A rank that gets less than the others is done before them.
TEST(ClockAlignment, PartsOfDifferentSizesTellNothing) {
  Trace trace;
  trace.world_size = 2;
  trace.ranks = {rank(0, 0, {{20, {0, 1}}}), rank(1, 500, {{20, {0, 1}}})};
  for (TraceRank& r : trace.ranks) r.ops[0].collective->kind = CollectiveKind::all_to_all;
  std::vector<std::string> notes;
  EXPECT_FALSE(align_clocks(trace, notes).moved);
}

TEST(ClockAlignment, WithoutCommonCollectivesNothingMoves) {
  Trace trace;
  trace.ranks = {rank(0, 100, {{20, {0}}})};
  std::vector<std::string> notes;
  EXPECT_FALSE(align_clocks(trace, notes).moved);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(end_us(trace, 0, 0), 120);
}

}  // namespace
}  // namespace weft
