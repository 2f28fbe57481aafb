#include "traces/replay_graph.h"

#include <gmock/gmock.h>

#include "tests/traces/temporary_file.h"
#include "traces/replay_tensors.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::input_error;

TraceOp op(TraceOpKind kind, const std::string& name, double start_us, double duration_us,
           std::optional<std::uint32_t> iteration, std::uint32_t stream = 7) {
  TraceOp out;
  out.kind = kind;
  out.name = name;
  out.iteration = iteration;
  out.stream = stream;
  out.issued = microseconds(start_us - 5);
  out.start = microseconds(start_us);
  out.duration = microseconds(duration_us);
  if (kind == TraceOpKind::kernel) out.shape = LaunchShape{{100, 1, 1}, {128, 1, 1}, 0, 0};
  if (kind == TraceOpKind::collective)
    out.collective = TraceCollective{CollectiveKind::all_reduce, 1000, DataType::fp16, 2, {0, 1}, "0"};
  return out;
}

// Left over; iteration 0: a kernel alone; iteration 1: the same beside a collective that waits for it, a host wait.
Trace two_iterations() {
  Trace trace;
  trace.source = "t.json";
  trace.world_size = 2;
  TraceRank rank;
  rank.compute_units = 108;
  rank.iterations = {{"a", Time(), microseconds(100)}, {"b", microseconds(100), microseconds(300)}};
  rank.ops = {op(TraceOpKind::kernel, "left", 5, 1, std::nullopt),
              op(TraceOpKind::kernel, "k", 10, 30, 0),
              op(TraceOpKind::kernel, "k", 110, 45, 1),
              op(TraceOpKind::collective, "nccl", 120, 100, 1, 40),
              op(TraceOpKind::memset, "Memset (Device)", 230, 2, 1),
              op(TraceOpKind::copy, "Memcpy HtoD (Host -> Device)", 240, 2, 1),
              op(TraceOpKind::host_wait, "cudaDeviceSynchronize", 250, 20, 1)};
  rank.ops[4].bytes = Bytes(8192);
  rank.ops[5].bytes = Bytes(77);
  rank.ops[5].copy_direction = "HtoD";
  rank.ops[3].waits = {0, 2};
  rank.ops[6].waits = {3, 5};
  trace.ranks.push_back(rank);
  return trace;
}

TEST(ReplayGraph, KeepsTheOperationsOfIterationsInOrder) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  EXPECT_EQ(graph.iterations, 2u);
  ASSERT_EQ(graph.nodes.size(), 6u);
  EXPECT_EQ(graph.nodes[0].kind, NodeKind::kernel);
  EXPECT_EQ(graph.nodes[2].kind, NodeKind::collective);
  EXPECT_EQ(graph.nodes[3].kind, NodeKind::kernel);
  EXPECT_EQ(graph.nodes[4].kind, NodeKind::copy);
  EXPECT_EQ(graph.nodes[4].copy.bytes, Bytes(77));
  EXPECT_TRUE(graph.nodes[4].copy.to_device);
  EXPECT_EQ(graph.nodes[5].kind, NodeKind::host_wait);
}

TEST(ReplayGraph, TurnsWaitsIntoDependencies) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  EXPECT_THAT(graph.nodes[2].dependencies, ElementsAre(OpId{1}));  // what was left over is not replayed
  EXPECT_THAT(graph.nodes[5].dependencies, ElementsAre(OpId{2}, OpId{4}));
}

TEST(ReplayGraph, RecordsTimesRelativeToTheIteration) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  ASSERT_TRUE(graph.nodes[1].recorded.has_value());
  EXPECT_EQ(graph.nodes[1].recorded->issued, microseconds(5));
  EXPECT_EQ(graph.nodes[1].recorded->started, microseconds(10));
  EXPECT_EQ(graph.nodes[1].recorded->duration, microseconds(45));
  EXPECT_EQ(graph.nodes[1].recorded->stream, 7u);
}

TEST(ReplayGraph, TakesTheTimeAloneFromInstancesWithoutCommunication) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  EXPECT_EQ(graph.nodes[0].recorded->alone, microseconds(30));
  EXPECT_EQ(graph.nodes[1].recorded->alone, microseconds(30));  // not the 45 under the collective
  EXPECT_EQ(graph.nodes[2].recorded->alone, std::nullopt);
}

TEST(ReplayGraph, TakesTheTimeAloneFromTheSameLaunchElsewhere) {
  Trace trace = two_iterations();
  trace.ranks[0].ops[1].iteration = 1;
  trace.ranks[0].iterations[0].start = microseconds(4);
  trace.ranks[0].iterations[1].start = microseconds(4);
  const Graph graph = graph_from_trace(trace, 0);
  EXPECT_EQ(graph.nodes[1].recorded->alone, microseconds(30));
}

TEST(ReplayGraph, HasNoTimeAloneWhereAllWereOverlapped) {
  Trace trace = two_iterations();
  trace.ranks[0].ops[1].start = microseconds(125);
  EXPECT_EQ(graph_from_trace(trace, 0).nodes[1].recorded->alone, std::nullopt);
}

TEST(ReplayGraph, TakesTheShortestWhereAllWereOverlappedIfAskedFor) {
  Trace trace = two_iterations();
  const Graph as_it_is = graph_from_trace(trace, 0, true);
  EXPECT_EQ(as_it_is.nodes[1].recorded->alone, microseconds(30));  // it ran alone
  EXPECT_FALSE(as_it_is.nodes[1].recorded->overlapped);
  trace.ranks[0].ops[1].start = microseconds(125);
  const Graph graph = graph_from_trace(trace, 0, true);
  for (const std::size_t node : {0, 1}) {
    EXPECT_EQ(graph.nodes[node].recorded->alone, microseconds(30));
    EXPECT_TRUE(graph.nodes[node].recorded->overlapped);
  }
}

TEST(ReplayGraph, KnowsTheBytesOfCollectives) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  EXPECT_EQ(graph.nodes[2].collective.bytes, Bytes(2000));
  EXPECT_EQ(graph.nodes[2].collective.group_size, 2u);
  EXPECT_THAT(graph.nodes[2].collective.group_ranks, ElementsAre(0, 1));
}

TEST(ReplayGraph, RefusesCollectivesOfUnknownSize) {
  Trace trace = two_iterations();
  trace.ranks[0].ops[3].collective->elements.reset();
  EXPECT_THAT(input_error([&] { (void)graph_from_trace(trace, 0); }),
              ::testing::AllOf(HasSubstr("t.json: /ranks/0/ops/3 (nccl)"), HasSubstr("record_shapes")));
}

TEST(ReplayGraph, GivesKernelsWithoutALaunchOneBlockAUnit) {
  Trace trace = two_iterations();
  trace.ranks[0].ops[1].shape.reset();
  EXPECT_EQ(graph_from_trace(trace, 0).nodes[0].kernel.shape.blocks(), 108u);
}

TEST(ReplayGraph, UsesStayWithinTheirTensors) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  for (const Node& node : graph.nodes) {
    for (const auto* uses : {&node.kernel.reads, &node.kernel.writes}) {
      for (const TensorUse& use : *uses) {
        ASSERT_LT(use.tensor.value, graph.tensors.size());
        const std::uint64_t blocks = node.kernel.shape.blocks();
        const std::uint64_t slices = use.modulo ? use.modulo : (blocks + use.divisor - 1) / use.divisor;
        EXPECT_LE(use.offset + slices * use.bytes_per_block,
                  static_cast<std::uint64_t>(graph.tensors[use.tensor.value].bytes.count()));
      }
    }
  }
}

TEST(ReplayGraph, AKernelReadsWhatTheOneBeforeItMade) {
  const Graph graph = graph_from_trace(two_iterations(), 0);
  EXPECT_EQ(graph.nodes[1].kernel.reads[0].tensor, graph.nodes[0].kernel.writes[0].tensor);
}

TEST(ReplayTensors, RotatesWithinItsBound) {
  std::vector<Tensor> tensors;
  ReplayTensors pool(tensors, 4 << 20, 1 << 30);
  for (int i = 0; i < 100; ++i) (void)pool.take(Bytes(1 << 20));
  EXPECT_EQ(tensors.size(), 4u);
}

TEST(ReplayTensors, DoesNotGiveTheTensorThatIsInUse) {
  std::vector<Tensor> tensors;
  ReplayTensors pool(tensors, 1, 1);
  const TensorId first = pool.take(Bytes(1000));
  const TensorId second = pool.take(Bytes(1000), {{first}});
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.take(Bytes(1000), {{second}}), first);
  const TensorId third = pool.take(Bytes(1000), {{first, second}});
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

// A sum of two tensors reads two and writes a third, however large they are.
TEST(ReplayGraph, TheOperandsOfAKernelAreDifferentTensors) {
  Trace trace = two_iterations();
  for (TraceOp& op : trace.ranks[0].ops) {
    if (op.kind != TraceOpKind::kernel) continue;
    op.name =
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3> >";
    op.shape = LaunchShape{{131'072, 1, 1}, {128, 1, 1}, 32, 0};  // 256 MiB each
  }
  int sums = 0;
  for (const Node& node : graph_from_trace(trace, 0).nodes) {
    if (node.kind != NodeKind::kernel || node.kernel.reads.size() != 2) continue;
    ++sums;
    EXPECT_NE(node.kernel.reads[0].tensor, node.kernel.reads[1].tensor);
    EXPECT_NE(node.kernel.reads[0].tensor, node.kernel.writes[0].tensor);
    EXPECT_NE(node.kernel.reads[1].tensor, node.kernel.writes[0].tensor);
  }
  EXPECT_GT(sums, 0);
}

}  // namespace
}  // namespace weft
