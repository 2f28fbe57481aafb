#include "traces/chakra_import.h"

#include <gmock/gmock.h>

#include "tests/traces/temporary_file.h"
#include "traces/chakra_file.h"
#include "traces/replay_graph.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

ChakraNode node(std::uint64_t id, bool host, std::uint64_t us, std::vector<std::uint64_t> after = {},
                ChakraType type = ChakraType::compute) {
  ChakraNode out;
  out.id = id;
  out.name = "n" + std::to_string(id);
  out.type = type;
  out.duration_us = us;
  out.data_dependencies = std::move(after);
  out.attributes.set("is_cpu_op", host);
  return out;
}

class ChakraImport : public ::testing::Test {
 protected:
  Trace import(std::vector<ChakraNode> nodes) {
    ChakraFile file;
    file.nodes = std::move(nodes);
    write_chakra(file, folder_.file("t.et"));
    return import_chakra({folder_.file("t.et")}, notes_);
  }
  Trace import_text(const std::string& json) { return import_chakra({folder_.write("t.json", json)}, notes_); }

  TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(ChakraImport, WritesAndReadsTheSameNodes) {
  ChakraNode written = node(7, false, 12, {3, 5}, ChakraType::collective);
  written.input_shapes = "[[2, 3]]";
  written.control_dependencies = {1};
  written.attributes.set("comm_size", std::int64_t{-4});
  written.attributes.set("list", std::vector<std::int64_t>{1, -2});
  ChakraFile file;
  file.metadata.set("schema", std::string("x"));
  file.nodes = {written};
  write_chakra(file, folder_.file("t.et"));
  const ChakraFile read = read_chakra(folder_.file("t.et"));
  EXPECT_EQ(read.metadata.text("schema"), "x");
  ASSERT_EQ(read.nodes.size(), 1u);
  EXPECT_EQ(read.nodes[0].id, 7u);
  EXPECT_EQ(read.nodes[0].name, "n7");
  EXPECT_EQ(read.nodes[0].type, ChakraType::collective);
  EXPECT_EQ(read.nodes[0].duration_us, 12u);
  EXPECT_THAT(read.nodes[0].data_dependencies, ElementsAre(3, 5));
  EXPECT_THAT(read.nodes[0].control_dependencies, ElementsAre(1));
  EXPECT_EQ(read.nodes[0].input_shapes, "[[2, 3]]");
  EXPECT_EQ(read.nodes[0].attributes.all(), written.attributes.all());
}

// The host launches a kernel at 10 us and a collective at 15; the collective waits for the kernel, the next kernel for
// nothing but its stream.
TEST_F(ChakraImport, PlaysDependenciesThrough) {
  ChakraNode collective = node(4, false, 30, {2, 3}, ChakraType::collective);
  collective.attributes.set("comm_type", std::int64_t{0});
  collective.attributes.set("comm_size", std::int64_t{4096});
  const Trace trace =
      import({node(1, true, 10), node(2, false, 20, {1}), node(3, true, 5, {1}), collective, node(5, false, 7, {3})});
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].name, "n2");
  EXPECT_EQ(ops[0].issued, microseconds(10));
  EXPECT_EQ(ops[1].name, "n5");
  EXPECT_EQ(ops[1].issued, microseconds(15));
  EXPECT_EQ(ops[1].start, microseconds(30));  // behind the first on its stream
  EXPECT_EQ(ops[2].name, "n4");
  EXPECT_EQ(ops[2].start, microseconds(30));
  EXPECT_THAT(ops[2].waits, ElementsAre(0));
  EXPECT_EQ(ops[2].collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(*ops[2].collective->elements * bytes_per_element(*ops[2].collective->type), 4096);
  EXPECT_NE(ops[2].stream, ops[0].stream);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ChakraImport, MakesHostsWaitThatDependOnTheGpu) {
  const Trace trace =
      import({node(1, true, 10), node(2, false, 20, {1}), node(3, true, 5, {1, 2}), node(4, false, 1, {3})});
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].kind, TraceOpKind::host_wait);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_EQ(ops[1].start, microseconds(10));
  EXPECT_EQ(ops[1].duration, microseconds(20));
  EXPECT_EQ(ops[2].issued, microseconds(35));
}

TEST_F(ChakraImport, LeavesOutDependenciesOnNodesThatAreNotThere) {
  ChakraNode second = node(2, false, 2, {1, 99});
  second.control_dependencies = {98};
  EXPECT_EQ(import({node(1, false, 1), second}).ranks[0].ops.size(), 2u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("2 dependencies on 2 nodes that are not there (the first: 98)"));
}

// A generated trace: no durations, nothing of the host, an order by control dependencies. Its computations ask of a GPU
// what they say, in blocks of a library's size.
TEST_F(ChakraImport, TakesWhatComputationsAskFor) {
  const auto generated = [](std::uint64_t id, std::int64_t operations, std::int64_t bytes) {
    ChakraNode out;
    out.id = id;
    out.name = "COMP_NODE_" + std::to_string(id);
    if (operations > 0) out.attributes.set("num_ops", operations);
    if (bytes > 0) out.attributes.set("tensor_size", bytes);
    return out;
  };
  constexpr std::int64_t kOperations = 50'000'000'000;
  constexpr std::int64_t kBytes = 300'000'000;
  ChakraNode reduce;
  reduce.id = 2;
  reduce.type = ChakraType::collective;
  reduce.control_dependencies = {1};
  reduce.attributes.set("comm_type", std::int64_t{0});
  reduce.attributes.set("comm_size", std::int64_t{4096});
  ChakraNode small = generated(3, 5, 0);
  small.data_dependencies = {1};
  small.control_dependencies = {2};  // who called it, where data says the order
  const Trace trace = import({generated(1, kOperations, kBytes), reduce, small});
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_THAT(notes_, ElementsAre());
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_THAT(ops[2].waits, ElementsAre());  // its stream has the first one before it
  EXPECT_EQ(ops[0].shape->blocks(), 4578u);  // of 64 KiB
  EXPECT_EQ(ops[2].shape->blocks(), 1u);

  const Graph graph = graph_from_trace(trace, 0);
  const KernelNode& kernel = graph.nodes[0].kernel;
  EXPECT_EQ(kernel.flops[static_cast<std::size_t>(Pipe::tensor_fp16)], kOperations);
  double read = 0, written = 0;
  for (const TensorUse& use : kernel.reads) read += static_cast<double>(use.bytes_per_block) * 4578;
  for (const TensorUse& use : kernel.writes) written += static_cast<double>(use.bytes_per_block) * 4578;
  EXPECT_NEAR(read, 2.0 / 3 * kBytes, 0.001 * kBytes);
  EXPECT_NEAR(written, 1.0 / 3 * kBytes, 0.001 * kBytes);
}

TEST_F(ChakraImport, SaysOfHowManyNothingIsKnown) {
  static_cast<void>(import({node(1, false, 0), node(2, false, 0), node(3, false, 4)}));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("2 computations say neither how long they took")));
}

TEST_F(ChakraImport, RefusesWhatCannotRun) {
  EXPECT_THAT(input_error([&] {
                (void)import({node(1, false, 1, {2}), node(2, false, 1, {1})});
              }),
              HasSubstr("without a cycle"));
  EXPECT_THAT(input_error([&] { (void)import({node(1, false, 1), node(1, false, 1)}); }), HasSubstr("each id once"));
  EXPECT_THAT(input_error([&] { (void)import({node(1, true, 1)}); }), HasSubstr("nodes on the GPU"));
  EXPECT_THAT(input_error([&] { (void)import({node(1, false, UINT64_MAX)}); }), HasSubstr("2.5 hours"));
  EXPECT_THAT(input_error([&] { (void)import({}); }), HasSubstr("with nodes, got none"));
}

TEST_F(ChakraImport, ReadsJson) {
  const Trace trace = import_text(R"({"workload_name": "w", "workload_graph": [
    {"Id": 1, "Name": "host", "NodeType": 4, "data_deps": [], "runtime": 3, "is_cpu_op": true},
    {"Id": 3, "Name": "generated", "NodeType": 4, "data_deps": [2], "num_ops": 1000},
    {"Id": 2, "Name": "ncclKernel_Broadcast_RING_LL_Sum_int8_t", "NodeType": 7, "ctrlDeps": [1], "data_deps": [1],
     "runtime": 5, "is_cpu_op": false, "comm_size": 64}]
})");
  const TraceOp& op = trace.ranks[0].ops.at(0);
  EXPECT_EQ(op.start, microseconds(3));
  EXPECT_EQ(op.collective->kind, CollectiveKind::broadcast);
  EXPECT_EQ(op.collective->elements, 64);
  EXPECT_EQ((*trace.ranks[0].ops.at(1).counters)[KernelCounter::tensor_fp16_ops], 1000);
  for (const char* bad : {R"({"workload_graph": [1]})", R"({"workload_graph": [{"Id": -1, "NodeType": 4}]})",
                          R"({"workload_graph": [{"Id": 1, "NodeType": 44}]})",
                          R"({"workload_graph": [{"Id": 1, "NodeType": 4, "data_deps": ["x"]}]})"})
    EXPECT_THAT(input_error([&] { (void)import_text(bad); }), HasSubstr("/workload_graph/0")) << bad;
  EXPECT_THAT(input_error([&] { (void)import_text(R"({"schema": "1.0.2", "nodes": []})"); }),
              HasSubstr("execution trace of PyTorch"));
}

TEST_F(ChakraImport, SurvivesDamagedFiles) {
  ChakraFile file;
  file.nodes = {node(1, true, 10), node(2, false, 20, {1})};
  write_chakra(file, folder_.file("t.et"));
  const std::string whole = testing::content_of(folder_.file("t.et"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      try {
        (void)import_chakra({folder_.write("damaged.et", damaged)}, notes_);
      } catch (const InputError&) {
      }
    }
    EXPECT_THAT(input_error([&] { (void)import_chakra({folder_.write("cut.et", whole.substr(0, at))}, notes_); }),
                HasSubstr("cut.et"));
  }
}

}  // namespace
}  // namespace weft
