// Which collectives kernels of sends and receives are, by themselves and over the ranks of a job.
#include "traces/peer_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;

constexpr auto kSends = true;
constexpr auto kReceives = false;

using Transfers = std::vector<PeerTransfer>;

// Of a job of as many ranks, each with one kernel.
struct Job {
  Trace trace;
  std::vector<std::vector<PeerKernel>> kernels;

  explicit Job(const std::vector<Transfers>& of_ranks) {
    trace.world_size = static_cast<std::uint32_t>(of_ranks.size());
    for (std::uint32_t r = 0; r < of_ranks.size(); ++r) {
      trace.ranks.emplace_back().rank = r;
      kernels.emplace_back();
      add(r, of_ranks[r]);
    }
  }
  void add(std::uint32_t rank, const Transfers& transfers) {
    std::vector<TraceOp>& ops = trace.ranks[rank].ops;
    kernels[rank].push_back({static_cast<std::uint32_t>(ops.size()), transfers});
    TraceOp& op = ops.emplace_back();
    op.kind = TraceOpKind::collective;
    op.collective.emplace();
    op.collective->kind = CollectiveKind::all_to_all;
    op.collective->group_size = trace.world_size;
    tell_exchange(rank, trace.world_size, transfers, *op.collective);
  }
  [[nodiscard]] std::vector<TraceCollective> joined() {
    join_exchanges(kernels, trace);
    std::vector<TraceCollective> found;
    for (const TraceRank& rank : trace.ranks)
      for (const TraceOp& op : rank.ops) found.push_back(*op.collective);
    return found;
  }
};

TEST(PeerTransfers, WhoSendsIsFirst) {
  TraceCollective c;
  tell_exchange(3, 8, {{kSends, 1, 10}}, c);
  EXPECT_EQ(c.kind, CollectiveKind::send_receive);
  EXPECT_THAT(c.group_ranks, ElementsAre(1u, 3u));
  EXPECT_EQ(c.first, 1u);
  tell_exchange(3, 8, {{kReceives, 1, 10}}, c);
  EXPECT_EQ(c.first, 0u);
  tell_exchange(1, 8, {{kReceives, 3, 10}}, c);
  EXPECT_EQ(c.first, 1u);
}

TEST(PeerTransfers, PlacesAreThoseOfTheGroup) {
  TraceCollective c;
  c.kind = CollectiveKind::all_to_all;
  c.group_ranks = {0, 4, 8, 12};
  c.group_size = 4;
  tell_exchange(0, 16, {{kSends, 4, 10}, {kReceives, 12, 10}}, c);
  EXPECT_EQ(c.kind, CollectiveKind::shift);
  EXPECT_EQ(c.distance, 1u);
  TraceCollective unknown;
  unknown.kind = CollectiveKind::all_to_all;
  unknown.group_size = 4;
  tell_exchange(0, 16, {{kSends, 4, 10}, {kReceives, 12, 10}}, unknown);
  EXPECT_EQ(unknown.kind, CollectiveKind::all_to_all);  // which four of the 16, nothing tells
}

TEST(PeerTransfers, APipelineDownBeginsAtItsLastRank) {
  Job job({{{kReceives, 1, 10}},
           {{kReceives, 2, 10}, {kSends, 0, 10}},
           {{kSends, 1, 10}, {kReceives, 3, 10}},
           {{kSends, 2, 10}}});
  const auto found = job.joined();
  EXPECT_THAT(found, Each(Field(&TraceCollective::kind, CollectiveKind::shift)));
  EXPECT_THAT(found, Each(Field(&TraceCollective::distance, 3u)));
  EXPECT_THAT(found, Each(Field(&TraceCollective::first, 3u)));
}

TEST(PeerTransfers, ARingHasNoFirst) {
  Job job({{{kSends, 1, 10}, {kReceives, 2, 10}},
           {{kSends, 2, 10}, {kReceives, 0, 10}},
           {{kSends, 0, 10}, {kReceives, 1, 10}}});
  const auto found = job.joined();
  EXPECT_THAT(found, Each(Field(&TraceCollective::kind, CollectiveKind::shift)));
  EXPECT_THAT(found, Each(Field(&TraceCollective::first, std::nullopt)));
}

// Halos: with the rank before and the one behind, both ways.
TEST(PeerTransfers, WhatElseHangsTogetherIsAnAllToAllOfThese) {
  Job job({{{kSends, 1, 10}, {kReceives, 1, 10}},
           {{kSends, 0, 10}, {kReceives, 0, 10}, {kSends, 2, 10}, {kReceives, 2, 10}},
           {{kSends, 1, 10}, {kReceives, 1, 10}},
           {}});
  const auto found = job.joined();
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(found[r].kind, CollectiveKind::all_to_all);
    EXPECT_THAT(found[r].group_ranks, ElementsAre(0u, 1u, 2u));
  }
  EXPECT_EQ(found[0].elements, 15);  // a third stays
  EXPECT_EQ(found[1].elements, 30);
}

TEST(PeerTransfers, RanksThatWereNotRecordedLeaveAllAsItIs) {
  Job job({{{kSends, 1, 10}}, {{kReceives, 0, 10}, {kSends, 2, 10}}, {}});
  const auto found = job.joined();
  EXPECT_EQ(found[0].kind, CollectiveKind::send_receive);
  EXPECT_EQ(found[1].kind, CollectiveKind::shift);
  EXPECT_EQ(found[1].first, std::nullopt);
}

// Not one collective: rank 0 would be in it twice.
TEST(PeerTransfers, SeveralKernelsOfARankDoNotBecomeOne) {
  Job job({{{kSends, 1, 10}}, {{kReceives, 0, 10}, {kSends, 2, 10}, {kSends, 0, 10}}, {{kReceives, 1, 10}}});
  job.add(0, {{kReceives, 1, 10}});
  const auto found = job.joined();
  EXPECT_EQ(found[0].kind, CollectiveKind::send_receive);
  EXPECT_EQ(found[1].kind, CollectiveKind::send_receive);
  EXPECT_EQ(found[1].first, 1u);
}

}  // namespace
}  // namespace weft
