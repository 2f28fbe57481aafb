#include "workloads/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim/error.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Node recorded(NodeKind kind, std::uint32_t iteration, std::uint32_t stream, double issued_us, double duration_us = 1) {
  Node node;
  node.kind = kind;
  node.name = "op";
  node.iteration = iteration;
  node.recorded = Recorded{stream, microseconds(issued_us), microseconds(issued_us + 2), microseconds(duration_us), {}};
  return node;
}

Node all_reduce(std::uint32_t iteration, double issued_us, std::vector<std::uint32_t> ranks) {
  Node node = recorded(NodeKind::collective, iteration, 40, issued_us);
  node.collective.bytes = Bytes(4096);
  node.collective.group_size = static_cast<std::uint32_t>(ranks.size());
  node.collective.group_ranks = std::move(ranks);
  return node;
}

Graph graph_of(std::vector<Node> nodes, std::uint32_t iterations = 1, std::uint32_t world = 2) {
  Graph graph;
  graph.name = "trace.json";
  graph.nodes = std::move(nodes);
  graph.iterations = iterations;
  graph.recorded_world = world;
  return graph;
}

std::vector<std::int64_t> delays_ns(const Program& program) {
  std::vector<std::int64_t> delays;
  for (const ProgramOp& op : program.ops) delays.push_back(op.host_delay.count() / 1'000'000);
  return delays;
}

std::string message_of(const Graph& graph, const ReplaySpec& spec) {
  try {
    (void)replay(graph, spec);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Replay, KeepsTheHostsTimeBetweenIssues) {
  const Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10), recorded(NodeKind::kernel, 0, 7, 25),
                                recorded(NodeKind::kernel, 0, 7, 26)});
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 1, {}}).at(0)), ElementsAre(10000, 15000, 1000));
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 0.5, {}}).at(0)), ElementsAre(5000, 7500, 500));
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 0, {}}).at(0)), ElementsAre(0, 0, 0));
}

TEST(Replay, LeavesOutWhatTheHostWaited) {
  const Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10), recorded(NodeKind::host_wait, 0, 0, 15, 100),
                                recorded(NodeKind::kernel, 0, 7, 118)});
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 1, {}}).at(0)), ElementsAre(10000, 5000, 3000));
}

TEST(Replay, KeepsTheGapBetweenIterations) {
  Graph graph = graph_of(
      {recorded(NodeKind::kernel, 0, 7, 10), recorded(NodeKind::kernel, 0, 7, 80), recorded(NodeKind::kernel, 1, 7, 5)},
      2);
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 1, {}}).at(0)), ElementsAre(10000, 70000, 5000));
  graph.iteration_starts = {Time(0), microseconds(100)};
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 1, {}}).at(0)), ElementsAre(10000, 70000, 25000));
}

TEST(Replay, TakesTheFirstIterationsAndDropsWaitsOnOthers) {
  Graph graph = graph_of(
      {recorded(NodeKind::kernel, 0, 7, 1), recorded(NodeKind::kernel, 1, 7, 1), recorded(NodeKind::kernel, 1, 9, 2)},
      2);
  graph.nodes[2].dependencies = {OpId{0}, OpId{1}};
  EXPECT_EQ(replay(graph, {1, 1, 1, {}}).at(0).ops.size(), 1U);
  const Program all = replay(graph, {1, 0, 1, {}}).at(0);
  EXPECT_THAT(all.ops[2].waits, ElementsAre(OpId{0}, OpId{1}));
  EXPECT_EQ(all.iterations, 2U);
  EXPECT_THAT(message_of(graph, {1, 3, 1, {}}), HasSubstr("expected at most the 2 recorded ones, got 3"));
}

TEST(Replay, UrgentStreamsAndThoseOfCollectivesGoFirst) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 1), recorded(NodeKind::kernel, 0, 14, 2),
                          recorded(NodeKind::collective, 0, 15, 3)});
  graph.recorded_world = 2;
  graph.nodes[2].collective.bytes = Bytes(1024);
  ReplaySpec spec;
  spec.gpus = 2;
  EXPECT_THAT(replay(graph, spec).at(0).priorities, ElementsAre(0, 0, 0));
  graph.urgent_streams = {9, 14};
  EXPECT_THAT(replay(graph, spec).at(0).priorities, ElementsAre(0, 1, 0));
  spec.high_priority = true;
  EXPECT_THAT(replay(graph, spec).at(1).priorities, ElementsAre(0, 1, 1));
}

TEST(Replay, NumbersStreamsDenselyAndWaitsOnlyBetweenThem) {
  Graph graph = graph_of(
      {recorded(NodeKind::kernel, 0, 40, 1), recorded(NodeKind::kernel, 0, 7, 2), recorded(NodeKind::kernel, 0, 7, 3)});
  graph.nodes[2].dependencies = {OpId{0}, OpId{1}};
  const Program program = replay(graph, {1, 0, 1, {}}).at(0);
  EXPECT_EQ(program.priorities.size(), 2U);
  EXPECT_EQ(program.ops[0].stream, StreamId{1});
  EXPECT_EQ(program.ops[1].stream, StreamId{0});
  EXPECT_THAT(program.ops[2].waits, ElementsAre(OpId{0}));
}

TEST(Replay, KeepsTheWaitsOfAHostWait) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 1), recorded(NodeKind::host_wait, 0, 0, 2, 5),
                          recorded(NodeKind::kernel, 0, 9, 8)});
  graph.nodes[1].dependencies = {OpId{0}};
  graph.nodes[2].dependencies = {OpId{1}};
  const Program program = replay(graph, {1, 0, 1, {}}).at(0);
  EXPECT_THAT(program.ops[1].waits, ElementsAre(OpId{0}));
  EXPECT_THAT(program.ops[2].waits, IsEmpty());
}

TEST(Replay, CarriesTheTimeAloneAndTheDemand) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 1)});
  graph.tensors.push_back({"t", Bytes(4096), MemoryClass::activations});
  graph.nodes[0].recorded->alone = microseconds(42);
  graph.nodes[0].kernel.shape.grid = {4, 1, 1};
  graph.nodes[0].kernel.reads = {{TensorId{0}, 0, 1024, 1, 0}};
  const Program program = replay(graph, {1, 0, 1, {}}).at(0);
  EXPECT_EQ(program.ops[0].measured_alone, microseconds(42));
  ASSERT_EQ(program.ops[0].kernel.reads.size(), 1U);
  EXPECT_NE(program.ops[0].kernel.reads[0].base, 0U);
  EXPECT_TRUE(program.memory.empty());
}

TEST(Replay, ScalesTheRecordedWorldToTheRun) {
  const Graph graph = graph_of({all_reduce(0, 1, {0, 1}), all_reduce(0, 2, {0, 1})});
  const auto programs = replay(graph, {4, 0, 1, {}});
  ASSERT_EQ(programs.size(), 4U);
  for (const Program& program : programs) {
    EXPECT_THAT(program.ops[1].collective.group, ElementsAre(GpuId{0}, GpuId{1}, GpuId{2}, GpuId{3}));
    EXPECT_EQ(program.ops[1].collective.sequence, 1U);
    EXPECT_NE(program.ops[0].collective.send_address, program.ops[1].collective.send_address);
  }
}

TEST(Replay, ReusesTheBuffersOfCollectivesInTheNextIteration) {
  const Graph graph = graph_of({all_reduce(0, 1, {0, 1}), all_reduce(1, 2, {0, 1})}, 2);
  const Program program = replay(graph, {2, 0, 1, {}}).at(0);
  EXPECT_EQ(program.ops[0].collective.send_address, program.ops[1].collective.send_address);
}

TEST(Replay, LeavesOutCollectivesOfOneGpuButNotTheirHostTime) {
  const Graph graph =
      graph_of({recorded(NodeKind::kernel, 0, 7, 10), all_reduce(0, 14, {0, 1}), recorded(NodeKind::kernel, 0, 7, 20)});
  EXPECT_THAT(delays_ns(replay(graph, {1, 0, 1, {}}).at(0)), ElementsAre(10000, 10000));
}

TEST(Replay, GivesEachGpuTheSubgroupOfItsPosition) {
  const Graph neighbours = graph_of({all_reduce(0, 1, {2, 3})}, 1, 4);
  EXPECT_THAT(replay(neighbours, {4, 0, 1, {}}).at(1).ops[0].collective.group, ElementsAre(GpuId{0}, GpuId{1}));
  EXPECT_THAT(replay(neighbours, {4, 0, 1, {}}).at(2).ops[0].collective.group, ElementsAre(GpuId{2}, GpuId{3}));
  const Graph strided = graph_of({all_reduce(0, 1, {1, 3})}, 1, 4);
  EXPECT_THAT(replay(strided, {4, 0, 1, {}}).at(2).ops[0].collective.group, ElementsAre(GpuId{0}, GpuId{2}));
}

TEST(Replay, RejectsGroupsThatDoNotExist) {
  EXPECT_THAT(message_of(graph_of({all_reduce(0, 1, {0, 5})}), {2, 0, 1, {}}),
              HasSubstr("trace.json: /nodes/0: expected a group of ranks below 2, got rank 5"));
  EXPECT_THAT(message_of(graph_of({all_reduce(0, 1, {0, 1})}, 1, 4), {8, 0, 1, {}}),
              HasSubstr("expected a group of the whole recorded world of 4 ranks"));
  EXPECT_THAT(message_of(graph_of({all_reduce(0, 1, {0, 1, 3})}, 1, 4), {4, 0, 1, {}}), HasSubstr("pattern"));
  Graph too_large = graph_of({all_reduce(0, 1, {})});
  too_large.nodes[0].collective.group_size = 16;
  EXPECT_THAT(message_of(too_large, {2, 0, 1, {}}), HasSubstr("at most 2 ranks, got 16"));
}

TEST(Replay, MakesTheLastGpuOfAGroupAsLateAsTheRecordedRankWaited) {
  Graph graph = graph_of({all_reduce(0, 1, {0, 1}), all_reduce(0, 2, {0, 1}), recorded(NodeKind::kernel, 0, 7, 3)});
  graph.nodes[0].recorded->duration = microseconds(900);
  graph.nodes[1].recorded->duration = microseconds(40);
  const auto delays = [&](const ReplaySpec& spec, std::size_t gpu) {
    std::vector<Time> found;
    const Program program = replay(graph, spec).at(gpu);
    for (const ProgramOp& op : program.ops) found.push_back(op.start_delay);
    return found;
  };
  const ReplaySpec late{4, 0, 1, {microseconds(100), microseconds(60), Time(0)}};
  EXPECT_THAT(delays(late, 0), ElementsAre(Time(0), Time(0), Time(0)));
  EXPECT_THAT(delays(late, 2), ElementsAre(Time(0), Time(0), Time(0)));
  EXPECT_THAT(delays(late, 3), ElementsAre(microseconds(800), Time(0), Time(0)));
  EXPECT_THAT(delays({4, 0, 1, {}}, 3), ElementsAre(Time(0), Time(0), Time(0)));
}

TEST(Replay, AnOperationIsAsFarBehindTheOneBeforeItAsItWasAlone) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10), recorded(NodeKind::kernel, 0, 7, 11),
                          recorded(NodeKind::kernel, 0, 7, 12), recorded(NodeKind::kernel, 0, 7, 13)});
  graph.nodes[1].recorded->behind = microseconds(7);
  graph.nodes[2].recorded->behind = Time(0);
  const Program program = replay(graph, {1, 0, 1, {}, microseconds(1)}).at(0);
  EXPECT_EQ(program.ops[1].start_delay, microseconds(6));
  EXPECT_EQ(program.ops[2].start_delay, Time(0));  // the simulated GPU takes longer
  EXPECT_EQ(program.ops[3].start_delay, Time(0));  // not known
}

TEST(Replay, ADeviceThatWasBusyBeforeTheRecordingStartsAsLate) {
  Node busy = recorded(NodeKind::kernel, 0, 7, 10);
  busy.recorded->started = microseconds(500);
  const Graph graph = graph_of({busy, recorded(NodeKind::kernel, 0, 7, 20), recorded(NodeKind::kernel, 0, 8, 30)});
  const Program program = replay(graph, {1, 0, 1, {}}).at(0);
  EXPECT_EQ(program.ops[0].start_delay, microseconds(490));
  EXPECT_EQ(program.ops[1].start_delay, Time(0));  // behind the first one
  EXPECT_EQ(program.ops[2].start_delay, Time(0));  // launched as usual
}

TEST(Replay, AWaitThatHadLongEndedDoesNotExplainALateStart) {
  Node waiting = recorded(NodeKind::kernel, 0, 8, 20);
  waiting.recorded->started = microseconds(500);
  waiting.dependencies = {OpId{0}};
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10, 100), waiting});  // ends at 112 us
  EXPECT_EQ(replay(graph, {1, 0, 1, {}}).at(0).ops[1].start_delay, microseconds(480));
  graph.nodes[0].recorded->duration = microseconds(480);  // at 492 us
  EXPECT_EQ(replay(graph, {1, 0, 1, {}}).at(0).ops[1].start_delay, Time(0));
}

TEST(Replay, AnOperationThatCameLateToAnIdleDeviceComesAsLate) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10), recorded(NodeKind::kernel, 0, 7, 20)});
  graph.nodes[1].recorded->late = microseconds(70);
  graph.nodes[1].recorded->behind = microseconds(7);
  EXPECT_EQ(replay(graph, {1, 0, 1, {}}).at(0).ops[1].start_delay, microseconds(70));
}

TEST(Replay, KnowsWhatTheHostDoesBehindTheLastOperationOfAnIteration) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 10, 60), recorded(NodeKind::host_wait, 0, 0, 20, 30),
                          recorded(NodeKind::kernel, 1, 7, 5, 60), all_reduce(1, 25, {0, 1})},
                         2);
  using Ends = std::vector<std::pair<Time, Time>>;
  const auto ends = [&](const ReplaySpec& spec) {
    const Program program = replay(graph, spec).at(0);
    Ends found;
    for (const StepEnd& end : program.step_ends) found.emplace_back(end.host, end.idle);
    return found;
  };
  EXPECT_TRUE(ends({1, 0, 1, {}}).empty());
  graph.iteration_lengths = {microseconds(90), microseconds(45)};
  // From the end of the wait, and of the first kernel; the second kernel ends behind its iteration.
  EXPECT_EQ(ends({2, 0, 1, {}}), (Ends{{microseconds(40), microseconds(18)}, {microseconds(20), Time(0)}}));
  EXPECT_EQ(ends({2, 0, 0.5, {}}), (Ends{{microseconds(20), microseconds(9)}, {microseconds(10), Time(0)}}));
  EXPECT_EQ(ends({1, 1, 1, {}}), (Ends{{microseconds(40), microseconds(18)}}));
  // The collective is left out: from the kernel's issue.
  EXPECT_EQ(ends({1, 0, 1, {}}), (Ends{{microseconds(40), microseconds(18)}, {microseconds(40), Time(0)}}));
}

TEST(Replay, BeginsWithTheOperationThatTheDeviceBeganWith) {
  Graph graph = graph_of({all_reduce(0, 5, {0, 1}), recorded(NodeKind::kernel, 0, 7, 10)});
  EXPECT_EQ(replay(graph, {2, 0, 1, {}}).at(0).begins_with, std::nullopt);
  graph.begins_with = OpId{1};
  EXPECT_EQ(replay(graph, {2, 0, 1, {}}).at(0).begins_with, OpId{1});
  EXPECT_EQ(replay(graph, {1, 0, 1, {}}).at(0).begins_with, OpId{0});  // the collective is left out
}

TEST(Replay, RejectsWhatWasNotRecorded) {
  Graph graph = graph_of({recorded(NodeKind::kernel, 0, 7, 1)});
  graph.nodes[0].recorded.reset();
  EXPECT_THAT(message_of(graph, {1, 0, 1, {}}), HasSubstr("/nodes/0: expected a recorded operation"));
  EXPECT_THAT(message_of(graph_of({}), {0, 0, 1, {}}), HasSubstr("/gpus"));
  EXPECT_THAT(message_of(graph_of({}), {1, 0, -1, {}}), HasSubstr("/workload/host_time_scale"));
}

}  // namespace
}  // namespace weft
