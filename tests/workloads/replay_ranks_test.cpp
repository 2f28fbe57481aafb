// Each GPU with the program of its own recorded rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"
#include "workloads/rank_meetings.h"
#include "workloads/replay.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Node recorded(NodeKind kind, std::uint32_t stream, double issued_us, std::uint32_t iteration = 0) {
  Node node;
  node.kind = kind;
  node.name = "op";
  node.iteration = iteration;
  node.recorded = Recorded{stream, microseconds(issued_us), microseconds(issued_us + 2), microseconds(1), {}};
  return node;
}

Node kernel(double issued_us) { return recorded(NodeKind::kernel, 7, issued_us); }

Node all_reduce(double issued_us, std::vector<std::uint32_t> ranks, const std::string& name = "",
                std::int64_t bytes = 4096) {
  Node node = recorded(NodeKind::collective, 40, issued_us);
  node.collective.bytes = Bytes(bytes);
  node.collective.group_size = static_cast<std::uint32_t>(ranks.size());
  node.collective.group_ranks = std::move(ranks);
  node.collective.communicator = name;
  return node;
}

Graph rank(std::uint32_t number, std::vector<Node> nodes, std::uint32_t world = 2, double begins_us = 0) {
  Graph graph;
  graph.name = "trace.json";
  graph.nodes = std::move(nodes);
  graph.recorded_rank = number;
  graph.recorded_world = world;
  graph.iteration_starts = {microseconds(begins_us)};
  return graph;
}

std::vector<std::int64_t> delays_us(const Program& program) {
  std::vector<std::int64_t> delays;
  for (const ProgramOp& op : program.ops) delays.push_back(op.host_delay.count() / 1'000'000'000);
  return delays;
}

std::string message_of(const std::vector<Graph>& ranks, std::uint32_t gpus) {
  try {
    static_cast<void>(replay_ranks(ranks, {gpus, 0, 1, {}}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ReplayRanks, GiveEachGpuWhatItsRankDid) {
  const auto programs = replay_ranks({rank(0, {kernel(10), all_reduce(15, {0, 1})}),
                                      rank(1, {kernel(3), kernel(9), kernel(30), all_reduce(50, {0, 1})})},
                                     {2, 0, 1, {}});
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_THAT(delays_us(programs[0]), ElementsAre(10, 5));
  EXPECT_THAT(delays_us(programs[1]), ElementsAre(3, 6, 21, 20));
  const CollectiveDemand& here = programs[0].ops[1].collective;
  const CollectiveDemand& there = programs[1].ops[3].collective;
  EXPECT_EQ(here.group, there.group);
  EXPECT_EQ(here.sequence, there.sequence);
  EXPECT_EQ(here.send_address, there.send_address);
}

TEST(ReplayRanks, BeginAsFarApartAsTheyDid) {
  const auto programs = replay_ranks({rank(0, {kernel(10)}, 2, 70), rank(1, {kernel(10)})}, {2, 0, 1, {}});
  EXPECT_THAT(delays_us(programs[0]), ElementsAre(80));
  EXPECT_THAT(delays_us(programs[1]), ElementsAre(10));
}

TEST(ReplayRanks, HaveBuffersBehindTheTensorsOfAllOfThem) {
  Graph large = rank(1, {kernel(1), all_reduce(2, {0, 1})});
  large.tensors.push_back({"t", Bytes(1 << 20)});
  large.nodes[0].kernel.reads = {{TensorId{0}, 0, 1 << 20, 1, 0}};
  const auto programs = replay_ranks({rank(0, {all_reduce(2, {0, 1})}), large}, {2, 0, 1, {}});
  const Operand& tensor = programs[1].ops[0].kernel.reads.front();
  EXPECT_GE(programs[0].ops[0].collective.send_address, tensor.base + (1 << 20));
}

TEST(ReplayRanks, MeetInTheGroupsOfTheirCommunicators) {
  // Two pairs beside a group of all; rank 2 issues its two in another order than the others.
  const auto of = [](std::uint32_t number, std::vector<std::uint32_t> pair, bool pair_first) {
    std::vector<Node> nodes{all_reduce(1, std::move(pair), "pair", 64), all_reduce(2, {0, 1, 2, 3}, "all", 1024)};
    if (!pair_first) std::swap(nodes[0].collective, nodes[1].collective);
    return rank(number, nodes, 4);
  };
  const auto programs = replay_ranks(
      {of(0, {0, 1}, true), of(1, {0, 1}, true), of(2, {2, 3}, false), of(3, {2, 3}, true)}, {4, 0, 1, {}});
  EXPECT_THAT(programs[1].ops[0].collective.group, ElementsAre(GpuId{0}, GpuId{1}));
  EXPECT_THAT(programs[3].ops[0].collective.group, ElementsAre(GpuId{2}, GpuId{3}));
  EXPECT_EQ(programs[2].ops[0].collective.group.size(), 4U);
  EXPECT_EQ(programs[2].ops[0].collective.send_address, programs[0].ops[1].collective.send_address);
}

TEST(ReplayRanks, TellCommunicatorsOfTheSameRanksApart) {
  const auto of = [](std::uint32_t number, bool turned) {
    std::vector<Node> nodes{all_reduce(1, {0, 1}, "gradients", 4096), all_reduce(2, {0, 1}, "norms", 64)};
    if (turned) std::swap(nodes[0].collective, nodes[1].collective);
    return rank(number, nodes);
  };
  const auto programs = replay_ranks({of(0, false), of(1, true)}, {2, 0, 1, {}});
  EXPECT_EQ(programs[0].ops[0].collective.sequence, programs[1].ops[1].collective.sequence);
  EXPECT_EQ(programs[0].ops[1].collective.sequence, programs[1].ops[0].collective.sequence);
  EXPECT_NE(programs[0].ops[0].collective.sequence, programs[0].ops[1].collective.sequence);
}

TEST(ReplayRanks, OfUnknownGroupsMeetByKind) {
  const auto of = [](std::uint32_t number, bool turned) {
    std::vector<Node> nodes{all_reduce(1, {}), all_reduce(2, {})};
    nodes[turned ? 0 : 1].collective.kind = CollectiveKind::all_to_all;
    return rank(number, nodes);
  };
  const auto programs = replay_ranks({of(0, false), of(1, true)}, {2, 0, 1, {}});
  EXPECT_EQ(programs[0].ops[0].collective.sequence, programs[1].ops[1].collective.sequence);
}

TEST(ReplayRanks, SendAndReceiveBetweenTwo) {
  const auto sends = [](double issued_us, std::vector<std::uint32_t> ranks) {
    Node node = all_reduce(issued_us, std::move(ranks));
    node.collective.kind = CollectiveKind::send_receive;
    return node;
  };
  const auto programs = replay_ranks({rank(0, {sends(1, {0, 1})}, 3), rank(1, {sends(1, {0, 1}), sends(2, {1, 2})}, 3),
                                      rank(2, {sends(9, {1, 2})}, 3)},
                                     {3, 0, 1, {}});
  EXPECT_THAT(programs[1].ops[1].collective.group, ElementsAre(GpuId{1}, GpuId{2}));
  EXPECT_EQ(programs[2].ops[0].collective.kind, CollectiveKind::send_receive);
  EXPECT_EQ(programs[2].ops[0].collective.send_address, programs[1].ops[1].collective.send_address);
}

// What two stages send each other meets by who sends, whichever each of them launches first.
TEST(ReplayRanks, BothWaysBetweenTwo) {
  const auto sends = [](double issued_us, std::uint32_t sender) {
    Node node = all_reduce(issued_us, {0, 1});
    node.collective.kind = CollectiveKind::send_receive;
    node.collective.first = sender;
    return node;
  };
  const auto programs =
      replay_ranks({rank(0, {sends(1, 0), sends(2, 1)}), rank(1, {sends(1, 1), sends(2, 0)})}, {2, 0, 1, {}});
  const auto& first = programs[0].ops[0].collective;
  const auto& second = programs[1].ops[1].collective;
  EXPECT_EQ(first.root, 0u);
  EXPECT_EQ(second.root, 0u);
  EXPECT_EQ(first.sequence, second.sequence);
  EXPECT_EQ(first.send_address, second.send_address);
  EXPECT_EQ(programs[1].ops[0].collective.root, 1u);
}

TEST(ReplayRanks, ShiftThroughAPipeline) {
  const auto shift = [](std::uint32_t first) {
    Node node = all_reduce(1, {0, 1, 2});
    node.collective.kind = CollectiveKind::shift;
    node.collective.distance = 2;
    node.collective.first = first;
    return node;
  };
  const auto programs =
      replay_ranks({rank(0, {shift(2)}, 3), rank(1, {shift(2)}, 3), rank(2, {shift(2)}, 3)}, {3, 0, 1, {}});
  EXPECT_EQ(programs[1].ops[0].collective.distance, 2u);
  EXPECT_EQ(programs[1].ops[0].collective.first, 2u);
  EXPECT_THAT(message_of({rank(0, {shift(2)}, 3), rank(1, {shift(1)}, 3), rank(2, {shift(2)}, 3)}, 3),
              HasSubstr("expected the same peers in collective 0 of the group of ranks 0, 1, 2"));
}

TEST(ReplayRanks, TakeTheLargestPartOfUnevenExchanges) {
  Node few = all_reduce(1, {0, 1});
  few.collective.kind = CollectiveKind::all_to_all;
  Node many = few;
  many.collective.bytes = Bytes(8192);
  const auto programs = replay_ranks({rank(0, {few}), rank(1, {many})}, {2, 0, 1, {}});
  EXPECT_EQ(programs[0].ops[0].collective.bytes, Bytes(8192));
  EXPECT_EQ(programs[1].ops[0].collective.bytes, Bytes(8192));
}

TEST(ReplayRanks, AreRefusedWhereSomeAreMissing) {
  EXPECT_THAT(message_of({rank(0, {kernel(1)}, 4), rank(2, {kernel(1)}, 4)}, 2),
              HasSubstr("expected all 4 ranks of the recorded run, or one rank for all GPUs (workload.rank), got 2 "
                        "without 1, 3"));
  EXPECT_THAT(
      message_of({rank(0, {kernel(1)}), rank(1, {kernel(1)})}, 8),
      HasSubstr("expected as many GPUs as recorded ranks (2), or one rank for all GPUs (workload.rank), got 8"));
}

TEST(ReplayRanks, AreRefusedWhereCollectivesDoNotMatch) {
  const auto two = [](std::vector<Node> first, std::vector<Node> second) {
    return message_of({rank(0, std::move(first)), rank(1, std::move(second))}, 2);
  };
  EXPECT_THAT(two({all_reduce(1, {0, 1}), all_reduce(2, {0, 1})}, {all_reduce(1, {0, 1})}),
              HasSubstr("expected rank 1 to take part in collective 1 of the group of ranks 0, 1 in iteration 0 "
                        "(all_reduce) as rank 0 does, got no such operation on it"));
  EXPECT_THAT(
      two({all_reduce(1, {0, 1}, "g")}, {all_reduce(1, {0, 1}, "g", 64)}),
      HasSubstr("/nodes/0: expected the same bytes of one type in collective 0 of group \"g\" in iteration 0 on "
                "ranks 0 and 1, got 4096 B of fp32 and 64 B of fp32"));
  Node other = all_reduce(1, {0, 1}, "g");
  other.collective.kind = CollectiveKind::all_gather;
  EXPECT_THAT(two({all_reduce(1, {0, 1}, "g")}, {other}),
              HasSubstr("expected the same collective 0 of group \"g\" in iteration 0 on ranks 0 and 1, got all_reduce "
                        "and all_gather"));
}

TEST(ReplayRanks, AreRefusedWithDifferentNumbersOfIterations) {
  Graph longer = rank(1, {kernel(1)});
  longer.iterations = 2;
  longer.iteration_starts = {Time(0), microseconds(50)};
  EXPECT_THAT(message_of({rank(0, {kernel(1)}), longer}, 2),
              HasSubstr("expected the 1 iterations of rank 0 on rank 1 too, got 2"));
}

}  // namespace
}  // namespace weft
