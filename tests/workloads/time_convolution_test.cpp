// Convolutions along time, split by rows: numbers against a single GPU, bytes against the formula, who waits for whom.
#include "workloads/single_sample/time_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/error.h"
#include "workloads/address_plan.h"
#include "workloads/data_parallel.h"
#include "workloads/memory_plan.h"
#include "workloads/single_sample/temporal_reference.h"

namespace weft {
namespace {

constexpr double kClose = 1e-5;

SampleSplit spatial(std::uint32_t ranks = 0) {
  SampleSplit split{.scheme = SampleScheme::spatial};
  for (std::uint32_t r = 0; r < ranks; ++r) split.gpus.push_back(r);
  return split;
}

TemporalShape shape(TemporalBlock block, bool causal = true, std::vector<std::int64_t> dilations = {1, 3}) {
  return {.channels = 5,
          .kernel = 3,
          .dilations = std::move(dilations),
          .layers = 3,
          .block = block,
          .skip_channels = 7,
          .causal = causal};
}

double largest_error(const TemporalShape& of, std::int64_t steps, std::uint32_t ranks, SampleSplit split = spatial(),
                     std::int64_t batch = 1, const SeeNode& finished = {}) {
  double most = 0;
  for (const auto& [name, error] : check_temporal(of, {std::move(split), steps, batch}, ranks, 7, finished)) {
    most = std::max(most, error);
  }
  return most;
}

class TimeConvolutionValues : public ::testing::TestWithParam<TemporalBlock> {};

TEST_P(TimeConvolutionValues, AreThoseOfOneGpu) {
  for (const bool causal : {true, false}) {
    for (const std::uint32_t ranks : {1, 2, 3, 4, 8}) {
      for (const std::int64_t steps : {48, 37, 5}) {
        EXPECT_LT(largest_error(shape(GetParam(), causal), steps, ranks), kClose)
            << ranks << " ranks, " << steps << " steps, " << (causal ? "causal" : "centred");
      }
    }
  }
}

TEST_P(TimeConvolutionValues, WhateverIsOverlapped) {
  for (const bool causal : {true, false}) {
    SampleSplit split = spatial();
    split.overlap = false;
    EXPECT_LT(largest_error(shape(GetParam(), causal), 37, 3, split, 2), kClose);
    split = spatial();
    split.interior_first = false;
    EXPECT_LT(largest_error(shape(GetParam(), causal), 37, 3, split, 2), kClose);
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, TimeConvolutionValues,
                         ::testing::Values(TemporalBlock::plain, TemporalBlock::tcn, TemporalBlock::wavenet));

TEST(TimeConvolutionHalos, ComeFromAsManyNeighboursAsTheyReach) {
  for (const bool causal : {true, false}) {
    for (const std::int64_t dilation : {7, 16, 40}) {
      TemporalShape of = shape(TemporalBlock::tcn, causal, {dilation, 1});
      EXPECT_LT(largest_error(of, 29, 8), kClose) << dilation;  // four rows a rank, the last one has one
      of.kernel = 4;                                            // of an odd reach one row more behind
      EXPECT_LT(largest_error(of, 29, 4), kClose) << dilation;
    }
  }
}

TEST(TimeConvolutionHalos, ARowThatIsWrongShows) {
  const auto spoilt = [](const std::string& which, std::uint32_t at_rank, bool causal) {
    std::size_t seen = 0;
    const double error =
        largest_error(shape(TemporalBlock::tcn, causal), 37, 4, spatial(), 1,
                      [&](std::uint32_t rank, const Node& node, TensorValues& values) {
                        if (node.kind != NodeKind::collective || node.name != which || rank != at_rank || seen++ > 0)
                          return;
                        values.data(node.collective.target->tensor)[0] += 1;
                      });
    EXPECT_EQ(seen > 0, true);
    return error;
  };
  EXPECT_GT(spoilt("halo_from_before", 1, true), kClose);
  EXPECT_GT(spoilt("halo_from_behind", 1, true), kClose);  // of the gradient
  EXPECT_GT(spoilt("halo_from_behind", 2, false), kClose);
  EXPECT_LT(spoilt("halo_from_before", 0, true), kClose);  // what comes round from the last rank nobody looks at
}

ModelSpec spec(const char* precision) {
  return {.model = "temporal_convolution", .batch = 1, .precision = precision, .compute_units = 132};
}

struct Sent {
  double forward = 0, backward = 0;
};

Sent sent(const Graph& graph) {
  Sent sum;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::collective) continue;
    EXPECT_EQ(node.collective.kind, CollectiveKind::shift);
    (node.phase == TrainingPhase::forward ? sum.forward : sum.backward) +=
        static_cast<double>(node.collective.bytes.count());
  }
  return sum;
}

// ParaDL, table 3, of the spatial scheme: in each convolution halo(x) forward and halo(dy) backward, here of the rows
// that the filter reaches beyond its own; and the all-reduce of the weights.
TEST(TimeConvolutionBytesFormula, HalosForwardAndBackwardAndTheWeights) {
  for (const std::uint32_t ranks : {2, 4, 8}) {
    for (const bool causal : {true, false}) {
      const TemporalShape of{.channels = 64,
                             .kernel = 5,
                             .dilations = {1, 2, 4, 8},
                             .layers = 8,
                             .block = TemporalBlock::tcn,
                             .causal = causal};
      const TimeAxis axis{spatial(ranks), 4096, 2};
      const Graph graph = make_temporal_convolution(spec("amp"), axis, of).graph;
      const double rows = 2 * 2 * 4 * (1 + 2 + 4 + 8);  // two convolutions a block, two rounds of dilations
      EXPECT_DOUBLE_EQ(sent(graph).forward, rows * 2 * 64 * 2);
      EXPECT_DOUBLE_EQ(sent(graph).backward, rows * 2 * 64 * 2);
      const Program program = sample_parallel(graph, {}, {GpuGroup::first(ranks), {}});
      std::int64_t reduced = 0;
      for (const ProgramOp& op : program.ops) {
        if (op.kind == ProgramOpKind::collective && op.collective.kind == CollectiveKind::all_reduce) {
          reduced += op.collective.bytes.count();
        }
      }
      EXPECT_EQ(reduced, 4 * parameter_count(graph));
      EXPECT_EQ(parameter_count(graph), 16 * (5 * 64 * 64 + 64));
    }
  }
}

// A rank has as many rows in front and behind as there are ranks.
TEST(TimeConvolutionBytesFormula, NoMoreThanWhatOthersHave) {
  const TemporalShape of{.channels = 8, .kernel = 2, .dilations = {1000}, .block = TemporalBlock::plain};
  EXPECT_DOUBLE_EQ(sent(make_temporal_convolution(spec("fp32"), {spatial(4), 40, 1}, of).graph).forward, 30 * 8 * 4);
  EXPECT_EQ(sent(make_temporal_convolution(spec("fp32"), {spatial(1), 40, 1}, of).graph).forward, 0);
}

const Node& node_of(const Graph& graph, const std::string& name, TrainingPhase phase = TrainingPhase::forward) {
  for (const Node& node : graph.nodes) {
    if (node.name.starts_with(name) && node.phase == phase) return node;
  }
  throw InternalError("no " + name);
}

// Whether one needs the other, directly or by way of others.
bool needs(const Graph& graph, const Node& node, const Node& other) {
  std::set<std::size_t> open;
  for (const OpId id : node.dependencies) open.insert(id.value);
  while (!open.empty()) {
    const std::size_t last = *open.rbegin();
    open.erase(last);
    if (&graph.nodes[last] == &other) return true;
    for (const OpId id : graph.nodes[last].dependencies) open.insert(id.value);
  }
  return false;
}

TEST(TimeConvolutionOverlap, InteriorRowsAndWeightsDoNotWaitForHalos) {
  const TemporalShape of{.channels = 64, .kernel = 3, .dilations = {4}, .block = TemporalBlock::plain};
  const Graph graph = make_temporal_convolution(spec("amp"), {spatial(4), 4096, 1}, of).graph;
  const Node& halo = node_of(graph, "halo_from_before");
  EXPECT_FALSE(needs(graph, node_of(graph, "convolution_interior"), halo));
  EXPECT_TRUE(needs(graph, node_of(graph, "convolution_border"), halo));
  const Node& back = node_of(graph, "halo_from_behind", TrainingPhase::backward);
  EXPECT_FALSE(needs(graph, node_of(graph, "convolution_weight_gradient", TrainingPhase::backward), back));
  EXPECT_TRUE(needs(graph, node_of(graph, "convolution_data_gradient", TrainingPhase::backward), back));
  EXPECT_LT(&node_of(graph, "convolution_weight_gradient", TrainingPhase::backward),
            &node_of(graph, "convolution_data_gradient", TrainingPhase::backward));
}

// The work of all rows, however they are cut; and as many multiplications as one GPU has for its share.
TEST(TimeConvolutionWork, IsTheSameHoweverItIsCut) {
  const auto flops = [](std::uint32_t ranks, bool interior_first, bool causal) {
    TemporalShape of = shape(TemporalBlock::tcn, causal);
    of.channels = 64;
    SampleSplit split = spatial(ranks);
    split.interior_first = interior_first;
    double sum = 0;
    for (const Node& node : make_temporal_convolution(spec("amp"), {split, 4096, 1}, of).graph.nodes) {
      sum += node.kernel.flops[static_cast<std::size_t>(Pipe::tensor_fp16)];
    }
    return sum;
  };
  for (const bool causal : {true, false}) {
    EXPECT_DOUBLE_EQ(flops(4, true, causal), flops(4, false, causal));
    EXPECT_DOUBLE_EQ(4 * flops(4, true, causal), flops(1, true, causal));
  }
}

// Forward reads of a convolution: each tile its rows, and what the filter reaches beyond it; a wide filter at most a
// tile for each tap.
TEST(TimeConvolutionWork, TilesReadWhatTheirFilterReaches) {
  const auto read_bytes = [](std::int64_t dilation) {
    const TemporalShape of{.channels = 256, .kernel = 3, .dilations = {dilation}, .block = TemporalBlock::plain};
    const Graph graph = make_temporal_convolution(spec("amp"), {spatial(1), 1 << 16, 1}, of).graph;
    const Node& node = node_of(graph, "convolution_forward");
    const auto blocks = static_cast<double>(node.kernel.shape.blocks());
    double bytes = 0;
    for (const TensorUse& use : node.kernel.reads) {
      if (graph.tensors[use.tensor.value].name == "temporal.input") {
        bytes += static_cast<double>(use.bytes_per_block) * blocks / node.kernel.shape.grid[0];
      }
    }
    return bytes / (65536.0 * 256 * 2);
  };
  EXPECT_NEAR(read_bytes(1), 1, 0.01);
  EXPECT_NEAR(read_bytes(128), 2, 0.02);
  EXPECT_NEAR(read_bytes(4096), 3, 0.2);  // less what lies before the beginning
}

TEST(TimeConvolutionMemory, HalosAreCommunicationBuffers) {
  const auto most = [](std::uint32_t ranks, std::int64_t dilation) {
    const TemporalShape of{
        .channels = 64, .kernel = 2, .dilations = {dilation}, .layers = 4, .block = TemporalBlock::plain};
    const TimeAxis axis{spatial(ranks), 65536, 1};
    return peak_memory(
        sample_parallel(make_temporal_convolution(spec("amp"), axis, of).graph, {}, {GpuGroup::first(ranks), {}}));
  };
  const auto communication = [&](std::uint32_t ranks, std::int64_t dilation) {
    return most(ranks, dilation).by_class[static_cast<std::size_t>(MemoryClass::communication)].count();
  };
  EXPECT_EQ(communication(1, 512), 0);
  // Those of all four inputs are kept for the gradients of the weights; most is there before the first of a gradient
  // is.
  EXPECT_EQ(communication(4, 512), 4 * 512 * 64 * 2);
  EXPECT_EQ(communication(4, 1 << 14), 4 * (1 << 14) * 64 * 2);
  EXPECT_GT(most(2, 512).total.count(), 19 * most(4, 512).total.count() / 10);
}

TEST(TimeConvolutionErrors, SayWhatCannotBeSplit) {
  const auto message = [](const TimeAxis& axis) -> std::string {
    try {
      validate(axis);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message({spatial(4), 3, 1}), testing::HasSubstr("/workload/sequence"));
  EXPECT_THAT(message({spatial(4), 9, 1}), testing::HasSubstr("3 rows each"));
  SampleSplit ring = spatial(2);
  ring.scheme = SampleScheme::ring_attention;
  EXPECT_THAT(message({ring, 64, 1}), testing::HasSubstr("/scheme/name"));
  EXPECT_EQ(message({spatial(4), 10, 1}), "");
  EXPECT_EQ(message({spatial(1), 1, 1}), "");
}

}  // namespace
}  // namespace weft
