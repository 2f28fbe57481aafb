#include "workloads/memory_plan.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "workloads/data_parallel.h"
#include "workloads/graph_builder.h"
#include "workloads/model_zoo.h"

namespace weft {
namespace {

Bytes of(const MemoryPeak& peak, MemoryClass memory_class) {
  return peak.by_class[static_cast<std::size_t>(memory_class)];
}

Node kernel(std::vector<TensorUse> reads, std::vector<TensorUse> writes) {
  Node node;
  node.kernel.reads = std::move(reads);
  node.kernel.writes = std::move(writes);
  return node;
}

// weights 4096, gradients 4096, momentum 4096 stay; x (8192) lives over nodes 0-1, y (1024) over 1-2, z (2048) over
// 2-3.
Graph tiny() {
  GraphBuilder builder("tiny");
  const TensorId weights = builder.add_tensor("weights", Bytes(4096), MemoryClass::parameters);
  const TensorId gradients = builder.add_tensor("gradients", Bytes(4096), MemoryClass::gradients);
  const TensorId momentum = builder.add_tensor("momentum", Bytes(4096), MemoryClass::optimizer);
  const TensorId x = builder.add_tensor("x", Bytes(8192), MemoryClass::activations);
  const TensorId y = builder.add_tensor("y", Bytes(1024), MemoryClass::workspace);
  const TensorId z = builder.add_tensor("z", Bytes(2048), MemoryClass::activations);
  const auto whole = [&](TensorId id) {
    return TensorUse{id, 0, static_cast<std::uint64_t>(builder.tensor(id).bytes.count()), 1, 0};
  };
  builder.add(kernel({whole(weights)}, {whole(x)}));
  builder.add(kernel({whole(x)}, {whole(y)}));
  builder.add(kernel({whole(y)}, {whole(z), whole(gradients)}));
  builder.add(kernel({whole(z), whole(gradients), whole(momentum)}, {whole(weights)}));
  return builder.finish();
}

TEST(MemoryPlan, FindsThePeakOfATinyStep) {
  for (const std::uint32_t iterations : {1U, 3U}) {
    const auto programs = data_parallel(tiny(), {1, true, Bytes(1), Bytes(1), iterations});
    const MemoryPeak peak = peak_memory(programs.at(0));
    EXPECT_EQ(peak.total, Bytes(3 * 4096 + 8192 + 1024));
    EXPECT_EQ(peak.at, OpId{1});
    EXPECT_EQ(of(peak, MemoryClass::parameters), Bytes(4096));
    EXPECT_EQ(of(peak, MemoryClass::gradients), Bytes(4096));
    EXPECT_EQ(of(peak, MemoryClass::optimizer), Bytes(4096));
    EXPECT_EQ(of(peak, MemoryClass::activations), Bytes(8192));
    EXPECT_EQ(of(peak, MemoryClass::workspace), Bytes(1024));
    EXPECT_EQ(of(peak, MemoryClass::communication), Bytes(0));
    ASSERT_EQ(peak.largest.size(), 5U);
    EXPECT_EQ(peak.largest[0], (std::pair<std::string, Bytes>{"x", Bytes(8192)}));
    EXPECT_EQ(peak.largest[1].first, "gradients");
    EXPECT_EQ(peak.largest[4].first, "y");
  }
}

TEST(MemoryPlan, IsZeroWhereMemoryIsUnknown) {
  const MemoryPeak peak = peak_memory(Program{});
  EXPECT_EQ(peak.total, Bytes(0));
  EXPECT_TRUE(peak.largest.empty());
}

TEST(MemoryPlan, NoticesMoreFreedThanAllocated) {
  Program program;
  program.memory = {{OpId{0}, MemoryClass::workspace, Bytes(512), "a"},
                    {OpId{1}, MemoryClass::workspace, Bytes(-1024), "a"}};
  EXPECT_THROW((void)peak_memory(program), InternalError);
}

// Four bytes a parameter and class; alignment adds less than 256 B for each of 161 tensors.
TEST(MemoryPlanFormula, HoldsFourBytesAParameterInEachOfThreeClasses) {
  const Graph graph = make_model({"resnet50", 8, "amp", 0, 108});
  const MemoryPeak peak = peak_memory(data_parallel(graph, {2, true, Bytes(25 << 20), Bytes(1 << 20), 1}).at(0));
  for (const MemoryClass kept : {MemoryClass::parameters, MemoryClass::gradients, MemoryClass::optimizer}) {
    EXPECT_GE(of(peak, kept), Bytes(4 * 25'557'032LL));
    EXPECT_LT(of(peak, kept), Bytes(4 * 25'557'032LL + 162 * 256 + 512));
  }
  const MemoryPeak lamb =
      peak_memory(data_parallel(make_model({"bert-large", 1, "amp", 0, 108}), {1, true, Bytes(1), Bytes(1), 1}).at(0));
  EXPECT_NEAR(static_cast<double>(of(lamb, MemoryClass::optimizer).count()), 8.0 * 336'226'108, 1e6);
}

// What autograd keeps of a ResNet-50 image in FP32: outputs of 53 convolutions (11,113,984 elements in torchvision's
// shapes) and of their norms, which ReLU overwrites, the pooled image and int64 positions of its maxima.
TEST(MemoryPlanFormula, ActivationsGrowByTheSavedTensorsOfAnImage) {
  const auto activations = [](std::uint32_t batch) {
    const Graph graph = make_model({"resnet50", batch, "tf32", 0, 108});
    return of(peak_memory(data_parallel(graph, {1, true, Bytes(1), Bytes(1), 1}).at(0)), MemoryClass::activations)
        .count();
  };
  const double per_image = static_cast<double>(activations(32) - activations(16)) / 16;
  const double saved = 4.0 * 2 * 11'113'984;
  EXPECT_GT(per_image, 0.85 * saved);
  EXPECT_LT(per_image, 1.15 * saved);
}

}  // namespace
}  // namespace weft
