#include "traces/matched_collectives.h"

#include <gmock/gmock.h>

#include "traces/trace_info.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TraceOp collective(double start_us, double duration_us, CollectiveKind kind = CollectiveKind::all_reduce,
                   const std::string& group = "", std::vector<std::uint32_t> ranks = {}) {
  TraceOp out;
  out.kind = TraceOpKind::collective;
  out.name = "nccl";
  out.iteration = 0;
  out.issued = out.start = microseconds(start_us);
  out.duration = microseconds(duration_us);
  const auto size = static_cast<std::uint32_t>(ranks.size());
  out.collective = TraceCollective{kind, 10, DataType::fp32, size, std::move(ranks), group};
  return out;
}

Trace run_of(std::vector<std::vector<TraceOp>> ranks) {
  Trace trace;
  trace.world_size = static_cast<std::uint32_t>(ranks.size());
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    TraceRank rank;
    rank.rank = r;
    rank.iterations = {{"ProfilerStep#3", Time(), microseconds(1000)}};
    rank.ops = std::move(ranks[r]);
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

// Rank 2 comes 90 us after rank 0; the collective itself takes 10 us.
TEST(MatchedCollectives, WhoComesLastPaysTheCostAndOthersWait) {
  const Trace trace = run_of({{collective(0, 100)}, {collective(50, 51)}, {collective(90, 10)}});
  const MatchedCollectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 1u);
  EXPECT_EQ(found.matched[0].start_spread, microseconds(90));
  EXPECT_EQ(found.matched[0].end_spread, microseconds(1));
  EXPECT_EQ(found.matched[0].shortest, microseconds(10));
  EXPECT_EQ(found.matched[0].median, microseconds(51));
  EXPECT_EQ(found.matched[0].longest, microseconds(100));
  EXPECT_EQ(found.waiting, (std::vector{microseconds(90), microseconds(41), Time()}));
  EXPECT_EQ(found.clock_offset[1], microseconds(1));
}

// Groups that run side by side, in another order on each rank.
TEST(MatchedCollectives, CountsWithinAGroup) {
  const auto kind = CollectiveKind::all_reduce;
  const Trace trace = run_of({{collective(0, 10, kind, "all", {0, 1, 2}), collective(20, 10, kind, "pair", {0, 1})},
                              {collective(0, 10, kind, "pair", {0, 1}), collective(20, 10, kind, "all", {0, 1, 2})},
                              {collective(5, 10, kind, "all", {0, 1, 2})}});
  const MatchedCollectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 2u);
  EXPECT_EQ(found.matched[0].members.size() + found.matched[1].members.size(), 5u);
  EXPECT_EQ(found.unmatched, 0u);
}

// As profiles abridge the lists of large groups.
TEST(MatchedCollectives, AGroupWithoutAListIsThoseThatUseItsName) {
  const auto kind = CollectiveKind::all_reduce;
  const auto of = [&](const std::string& group, double at) { return collective(at, 10, kind, group); };
  Trace trace = run_of({{of("all", 0), of("even", 20)},
                        {of("all", 1), of("odd", 20), of("odd", 40)},
                        {of("even", 0), of("all", 20)},
                        {of("all", 3), of("odd", 20)}});
  MatchedCollectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 3u);
  EXPECT_EQ(found.unmatched, 1u);  // the second of "odd" on one rank only
  std::map<std::string, std::size_t> members;
  for (const MatchedCollective& c : found.matched) members[c.group] = c.members.size();
  EXPECT_THAT(members, ElementsAre(Pair("all", 4), Pair("even", 2), Pair("odd", 2)));
  // Two groups of two ranks each, by one name.
  for (TraceRank& rank : trace.ranks)
    for (TraceOp& op : rank.ops) op.collective->group_size = 2;
  found = match_collectives(trace);
  EXPECT_EQ(found.matched.size(), 2u);
  EXPECT_EQ(found.unmatched, 5u);
}

TEST(MatchedCollectives, LeavesOutWhatOthersDoNotHave) {
  Trace trace = run_of({{collective(0, 10), collective(20, 10)}, {collective(1, 9)}});
  EXPECT_EQ(match_collectives(trace).matched.size(), 1u);
  EXPECT_EQ(match_collectives(trace).unmatched, 1u);
  trace.ranks[1].iterations[0].name = "ProfilerStep#4";
  EXPECT_EQ(match_collectives(trace).matched.size(), 0u);
  EXPECT_FALSE(match_collectives(trace).clock_offset[0].has_value());
}

// The root of a broadcast is done before the others.
TEST(MatchedCollectives, TakeClocksOnlyFromWhatEndsEverywhere) {
  const auto kind = CollectiveKind::broadcast;
  const Trace trace = run_of({{collective(0, 10, kind)}, {collective(0, 40, kind)}});
  EXPECT_EQ(match_collectives(trace).matched.size(), 1u);
  EXPECT_FALSE(match_collectives(trace).clock_offset[0].has_value());
}

TEST(MatchedCollectives, AreToldByTraceInfo) {
  const Trace trace = run_of({{collective(0, 100)}, {collective(90, 10)}});
  const Json info = trace_info_json(trace);
  EXPECT_EQ(info["ranks_together"]["matched"], 1);
  EXPECT_DOUBLE_EQ(info["ranks_together"]["start_spread_s"]["max"].get<double>(), 90e-6);
  EXPECT_DOUBLE_EQ(info["per_rank"][0]["waiting_in_collectives_s"].get<double>(), 90e-6);
  EXPECT_THAT(trace_info_text(trace), HasSubstr("1 of the same; starts 90 to 90 us apart, ends 0 to 0 us"));
  EXPECT_TRUE(trace_info_json(run_of({{collective(0, 100)}}))["ranks_together"].is_null());
}

}  // namespace
}  // namespace weft
