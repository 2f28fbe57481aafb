#include "workloads/data_parallel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "workloads/gradient_buckets.h"
#include "workloads/graph_builder.h"
#include "workloads/model_zoo.h"

namespace weft {
namespace {

using testing::ElementsAre;

// A chain of parameters whose gradients of the given sizes become ready in order, one a node; then an optimizer node.
Graph chain(const std::vector<std::int64_t>& gradient_bytes) {
  GraphBuilder builder("chain");
  const TensorId weights = builder.add_tensor("weights", Bytes(0), MemoryClass::parameters);
  const TensorId all = builder.add_tensor("gradients", Bytes(0), MemoryClass::gradients);
  std::vector<TensorId> parameters, gradients;
  for (const std::int64_t bytes : gradient_bytes) {
    parameters.push_back(builder.add_view(fmt::format("p{}", parameters.size()), Bytes(bytes), weights));
    gradients.push_back(builder.add_view(fmt::format("g{}", gradients.size()), Bytes(bytes), all));
    builder.tensor(gradients.back()).gradient_of = parameters.back();
  }
  builder.place_views(weights, parameters);
  builder.place_views(all, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Node node;
    node.name = "backward";
    node.phase = TrainingPhase::backward;
    node.kernel.writes = {{gradients[i], 0, static_cast<std::uint64_t>(gradient_bytes[i]), 1, 0}};
    node.gradients_ready = {parameters[i]};
    builder.add(std::move(node));
  }
  Node optimizer;
  optimizer.name = "optimizer";
  optimizer.phase = TrainingPhase::optimizer;
  optimizer.kernel.reads = {{all, 0, static_cast<std::uint64_t>(builder.tensor(all).bytes.count()), 1, 0}};
  builder.add(std::move(optimizer));
  return builder.finish();
}

std::vector<std::int64_t> bucket_bytes(const Graph& graph, std::int64_t first, std::int64_t limit) {
  std::vector<std::int64_t> bytes;
  for (const GradientBucket& bucket : assign_buckets(graph, Bytes(first), Bytes(limit))) {
    bytes.push_back(bucket.bytes.count());
  }
  return bytes;
}

std::vector<std::string> names(const Program& program) {
  std::vector<std::string> all;
  for (const ProgramOp& op : program.ops) all.push_back(op.name);
  return all;
}

TEST(DataParallel, ProgramsShareTheListOfGpus) {
  const GpuGroup all = GpuGroup::first(4);
  const GpuGroup copy = all;
  EXPECT_EQ(copy.begin(), all.begin());
  EXPECT_EQ(all, (GpuGroup{GpuId{0}, GpuId{1}, GpuId{2}, GpuId{3}}));
  EXPECT_LT(GpuGroup::first(3), all);
}

TEST(GradientBuckets, CloseAtTheirLimitOrWithTheGradientThatExceedsIt) {
  EXPECT_THAT(bucket_bytes(chain({100, 100, 100}), 100, 200), ElementsAre(100, 200));
  EXPECT_THAT(bucket_bytes(chain({40, 80, 40}), 100, 200), ElementsAre(120, 40));
  EXPECT_THAT(bucket_bytes(chain({40, 1000, 40, 150, 20}), 100, 200), ElementsAre(1040, 210));
  EXPECT_THAT(bucket_bytes(chain({}), 100, 200), ElementsAre());
}

// Two A100, DistributedDataParallel on torchvision's ResNet-50: "In msg nelems" of the five all-reduces of a step in
// facebookresearch/HolisticTraceAnalysis, tests/data/nccl_parser_config/nccl_data.json.gz.
TEST(GradientBucketsValidation, AreThoseOfARecordedResNet50) {
  for (const std::string precision : {"tf32", "amp"}) {
    const Graph graph = make_model({"resnet50", 2, precision, 0, 108});
    std::vector<std::int64_t> elements;
    for (const std::int64_t bytes : bucket_bytes(graph, 1 << 20, 25 << 20)) elements.push_back(bytes / 4);
    EXPECT_THAT(elements, ElementsAre(2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040));
  }
}

TEST(DataParallel, ReducesABucketAsSoonAsItsLastGradientIsReady) {
  const auto programs = data_parallel(chain({512, 512, 512}), {2, true, Bytes(1024), Bytes(512), 1});
  const Program& program = programs.at(0);
  EXPECT_THAT(names(program), ElementsAre("backward", "all_reduce", "backward", "backward", "all_reduce", "optimizer"));
  EXPECT_THAT(program.ops[1].waits, ElementsAre(OpId{0}));
  EXPECT_THAT(program.ops[4].waits, ElementsAre(OpId{3}));
  EXPECT_THAT(program.ops[5].waits, ElementsAre(OpId{1}, OpId{4}));
  EXPECT_EQ(program.ops[1].stream, kCommunicationStream);
  EXPECT_EQ(program.ops[2].stream, kComputeStream);
  EXPECT_EQ(program.priorities.size(), 2U);
  EXPECT_THAT(program.ops[4].collective.group, ElementsAre(GpuId{0}, GpuId{1}));
}

TEST(DataParallel, CollectivesGoFirstWhereTheyAreOfAHigherPriority) {
  DataParallelSpec spec{2, true, Bytes(1024), Bytes(512), 1};
  EXPECT_THAT(data_parallel(chain({512, 512}), spec).at(0).priorities, ElementsAre(0, 0));
  spec.high_priority = true;
  EXPECT_THAT(data_parallel(chain({512, 512}), spec).at(0).priorities, ElementsAre(0, 1));
  spec.gpus = 1;
  EXPECT_THAT(data_parallel(chain({512, 512}), spec).at(0).priorities, ElementsAre(0));
}

TEST(DataParallel, ReducesAfterTheBackwardPassWithoutOverlap) {
  const auto programs = data_parallel(chain({512, 512, 512}), {2, false, Bytes(1024), Bytes(512), 1});
  EXPECT_THAT(names(programs.at(1)),
              ElementsAre("backward", "backward", "backward", "all_reduce", "all_reduce", "optimizer"));
  EXPECT_THAT(programs.at(1).ops[5].waits, ElementsAre(OpId{3}, OpId{4}));
}

TEST(DataParallel, DoesNotStartAnyReductionBeforeTheBackwardPassEndsWithoutOverlap) {
  const auto programs = data_parallel(chain({512, 512, 512}), {2, false, Bytes(1024), Bytes(512), 1});
  const Program& program = programs.at(0);
  for (std::uint32_t i = 3; i <= 4; ++i) EXPECT_THAT(program.ops[i].waits, testing::Contains(OpId{2}));
}

TEST(DataParallel, HasNoCollectiveOnOneGpu) {
  const auto programs = data_parallel(chain({512, 512}), {1, true, Bytes(1024), Bytes(512), 2});
  ASSERT_EQ(programs.size(), 1U);
  EXPECT_THAT(names(programs[0]),
              ElementsAre("backward", "backward", "optimizer", "backward", "backward", "optimizer"));
  EXPECT_EQ(programs[0].priorities.size(), 1U);
}

TEST(DataParallel, RepeatsTheStepWithRunningSequences) {
  const auto programs = data_parallel(chain({512, 512}), {2, true, Bytes(512), Bytes(512), 3});
  std::vector<std::uint32_t> sequences, iterations;
  for (const ProgramOp& op : programs.at(0).ops) {
    for (const OpId wait : op.waits) EXPECT_LT(wait.value, &op - &programs[0].ops.front());
    if (op.kind != ProgramOpKind::collective) continue;
    sequences.push_back(op.collective.sequence);
    iterations.push_back(op.iteration);
  }
  EXPECT_THAT(sequences, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(iterations, ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(DataParallel, ReducesInPlaceWhereTheGradientsAre) {
  const auto programs = data_parallel(chain({512, 256, 512}), {2, true, Bytes(600), Bytes(512), 1});
  const auto& ops = programs.at(0).ops;
  EXPECT_EQ(ops[1].collective.send_address, ops[0].kernel.writes[0].base);
  EXPECT_EQ(ops[1].collective.receive_address, ops[1].collective.send_address);
  EXPECT_EQ(ops[4].collective.send_address, ops[2].kernel.writes[0].base);
  EXPECT_EQ(ops[4].collective.bytes, Bytes(768));
}

TEST(DataParallel, GivesEveryGpuTheSameProgramAndTheSameOneEachTime) {
  const Graph graph = make_model({"resnet50", 2, "amp", 0, 108});
  const auto first = data_parallel(graph, {4, true, Bytes(25 << 20), Bytes(1 << 20), 2});
  const auto second =
      data_parallel(make_model({"resnet50", 2, "amp", 0, 108}), {4, true, Bytes(25 << 20), Bytes(1 << 20), 2});
  ASSERT_EQ(first.size(), 4U);
  for (const Program* other : {&first[3], &second[0]}) {
    ASSERT_EQ(first[0].ops.size(), other->ops.size());
    for (std::size_t i = 0; i < first[0].ops.size(); ++i) {
      EXPECT_EQ(first[0].ops[i].waits, other->ops[i].waits);
      EXPECT_EQ(first[0].ops[i].kernel.reads, other->ops[i].kernel.reads);
      EXPECT_EQ(first[0].ops[i].kernel.writes, other->ops[i].kernel.writes);
      EXPECT_EQ(first[0].ops[i].collective.send_address, other->ops[i].collective.send_address);
    }
  }
  EXPECT_DOUBLE_EQ(first[0].samples_per_iteration, 2);
}

TEST(DataParallel, GivesOperandsAddressesOnMemoryLines) {
  const auto programs =
      data_parallel(make_model({"vgg16", 2, "amp", 0, 108}), {2, true, Bytes(25 << 20), Bytes(1 << 20), 1});
  for (const ProgramOp& op : programs.at(0).ops) {
    for (const Operand& operand : op.kernel.writes) {
      EXPECT_NE(operand.base, 0U) << op.name;
      EXPECT_EQ(operand.base % 128, 0U) << op.name;
    }
  }
}

TEST(DataParallel, LetsTheHostWaitForTheCopyOfMixedPrecision) {
  const auto programs =
      data_parallel(make_model({"resnet50", 1, "amp", 0, 108}), {2, true, Bytes(25 << 20), Bytes(1 << 20), 1});
  const auto& ops = programs.at(0).ops;
  const auto wait =
      std::find_if(ops.begin(), ops.end(), [](const ProgramOp& op) { return op.kind == ProgramOpKind::host_wait; });
  ASSERT_NE(wait, ops.end());
  ASSERT_EQ(wait->waits.size(), 1U);
  EXPECT_EQ(ops[wait->waits[0].value].kind, ProgramOpKind::copy);
}

TEST(DataParallel, RejectsWhatMakesNoSense) {
  const Graph graph = chain({512});
  EXPECT_THROW((void)data_parallel(graph, {0, true, Bytes(1), Bytes(1), 1}), InputError);
  EXPECT_THROW((void)data_parallel(graph, {2, true, Bytes(0), Bytes(1), 1}), InputError);
  EXPECT_THROW((void)data_parallel(graph, {2, true, Bytes(1), Bytes(1), 0}), InputError);
}

}  // namespace
}  // namespace weft
