#include "workloads/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"
#include "workloads/graph_builder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Node kernel(std::vector<TensorUse> reads, std::vector<TensorUse> writes, std::uint32_t blocks = 1) {
  Node node;
  node.name = "kernel";
  node.kernel.shape.grid = {blocks, 1, 1};
  node.kernel.reads = std::move(reads);
  node.kernel.writes = std::move(writes);
  return node;
}

Graph two_nodes() {
  Graph graph;
  graph.tensors.push_back({"t", Bytes(1024), MemoryClass::activations});
  graph.nodes.push_back(kernel({}, {{TensorId{0}, 0, 1024, 1, 0}}));
  graph.nodes.push_back(kernel({{TensorId{0}, 0, 1024, 1, 0}}, {}));
  graph.nodes[1].dependencies = {OpId{0}};
  return graph;
}

std::string message_of(const Graph& graph) {
  try {
    validate(graph, "trace.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, AcceptsAValidOne) { EXPECT_NO_THROW(validate(two_nodes(), "trace.json")); }

TEST(Graph, RejectsADependencyThatDoesNotExist) {
  Graph graph = two_nodes();
  graph.nodes[1].dependencies = {OpId{7}};
  EXPECT_THAT(message_of(graph), HasSubstr("trace.json: /nodes/1: expected a dependency below 2, got 7"));
}

TEST(Graph, RejectsACycle) {
  Graph graph = two_nodes();
  graph.nodes[0].dependencies = {OpId{1}};
  EXPECT_THAT(message_of(graph), HasSubstr("/nodes/0: expected dependencies on earlier operations, got a cycle"));
  graph = two_nodes();
  graph.nodes[0].dependencies = {OpId{0}};
  EXPECT_THAT(message_of(graph), HasSubstr("got a cycle"));
}

TEST(Graph, RejectsATensorThatDoesNotExist) {
  Graph graph = two_nodes();
  graph.nodes[1].kernel.reads[0].tensor = TensorId{3};
  EXPECT_THAT(message_of(graph), HasSubstr("/nodes/1: expected a tensor below 1, got 3"));
}

TEST(Graph, RejectsAccessesOutsideTheirTensor) {
  Graph graph = two_nodes();
  graph.nodes[1].kernel.shape.grid = {3, 1, 1};
  graph.nodes[1].kernel.reads[0].bytes_per_block = 512;
  EXPECT_THAT(message_of(graph), HasSubstr("inside the 1024 bytes of tensor 't', got one up to byte 1536"));
  graph.nodes[1].kernel.reads[0].modulo = 2;
  EXPECT_EQ(message_of(graph), "");
}

TEST(Graph, RejectsAViewOutsideItsStorage) {
  Graph graph = two_nodes();
  graph.tensors.push_back({"view", Bytes(512), MemoryClass::activations, TensorId{0}, 768});
  EXPECT_THAT(message_of(graph), HasSubstr("/tensors/1: expected a view inside the 1024 bytes of 't'"));
}

TEST(Graph, RejectsEmptyLaunchesAndIterationsThatDoNotExist) {
  Graph graph = two_nodes();
  graph.nodes[0].kernel.shape.grid = {0, 1, 1};
  EXPECT_THAT(message_of(graph), HasSubstr("empty launch"));
  graph = two_nodes();
  graph.nodes[0].iteration = 1;
  EXPECT_THAT(message_of(graph), HasSubstr("expected an iteration below 1, got 1"));
}

TEST(GraphBuilder, FindsDependenciesFromDataAndReuseInPlace) {
  GraphBuilder builder("g");
  const TensorId a = builder.add_tensor("a", Bytes(128), MemoryClass::activations);
  const TensorId b = builder.add_tensor("b", Bytes(128), MemoryClass::activations);
  const TensorUse in_a{a, 0, 128, 1, 0}, in_b{b, 0, 128, 1, 0};
  builder.add(kernel({}, {in_a}));      // 0 writes a
  builder.add(kernel({in_a}, {in_b}));  // 1 reads it
  builder.add(kernel({in_a}, {}));      // 2 reads it too
  builder.add(kernel({in_b}, {in_a}));  // 3 overwrites a: after both readers and the writers of a and b
  builder.add(kernel({in_a}, {}));      // 4 sees only the new a
  const Graph graph = builder.finish();
  EXPECT_THAT(graph.nodes[0].dependencies, IsEmpty());
  EXPECT_THAT(graph.nodes[1].dependencies, ElementsAre(OpId{0}));
  EXPECT_THAT(graph.nodes[2].dependencies, ElementsAre(OpId{0}));
  EXPECT_THAT(graph.nodes[3].dependencies, ElementsAre(OpId{0}, OpId{1}, OpId{2}));
  EXPECT_THAT(graph.nodes[4].dependencies, ElementsAre(OpId{3}));
}

TEST(GraphBuilder, SeesViewsThroughTheirStorageButNotEachOther) {
  GraphBuilder builder("g");
  const TensorId all = builder.add_tensor("all", Bytes(0), MemoryClass::gradients);
  const TensorId first = builder.add_view("first", Bytes(100), all);
  const TensorId second = builder.add_view("second", Bytes(300), all);
  builder.place_views(all, {second, first});
  builder.add(kernel({}, {{first, 0, 100, 1, 0}}));
  builder.add(kernel({}, {{second, 0, 300, 1, 0}}));
  builder.add(kernel({{all, 0, 512, 1, 0}}, {}));
  const Graph graph = builder.finish();
  EXPECT_THAT(graph.nodes[1].dependencies, IsEmpty());
  EXPECT_THAT(graph.nodes[2].dependencies, ElementsAre(OpId{0}, OpId{1}));
  EXPECT_EQ(graph.tensors[second.value].view_offset, 0U);
  EXPECT_EQ(graph.tensors[first.value].view_offset, 512U);  // 300 bytes up to the next multiple of 256
  EXPECT_EQ(graph.tensors[all.value].bytes, Bytes(768));
}

}  // namespace
}  // namespace weft
