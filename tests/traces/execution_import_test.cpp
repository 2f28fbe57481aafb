#include "traces/execution_import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/kineto_import.h"

namespace weft {
namespace {

using ::testing::AllOf;
using testing::correlation;
using ::testing::ElementsAre;
using testing::gpu_args;
using ::testing::HasSubstr;
using testing::input_error;
using testing::kineto_event;
using testing::kineto_trace;
using testing::kSmallLaunch;
using testing::TemporaryFolder;

// A tensor of 4-byte elements: its value and, beside it, its shape.
std::string tensor(int storage, int elements) {
  return fmt::format("[{},{},0,{},4,\"cuda:0\"]", storage + 1, storage, elements);
}

// A node of schema 1.0.1.
std::string flat_node(int id, int rf_id, int thread, const std::string& name, const std::string& inputs,
                      const std::string& shapes, const std::string& types, const std::string& outputs) {
  return fmt::format(
      R"j({{"name":"{}","id":{},"rf_id":{},"parent":1,"seq_id":-1,"scope":0,"tid":{},"op_schema":"","inputs":[{}],)j"
      R"j("input_shapes":[{}],"input_types":[{}],"outputs":[{}],"output_shapes":[[8,8]],)j"
      R"j("output_types":["Tensor(float)"]}})j",
      name, id, rf_id, thread, inputs, shapes, types, outputs);
}

// The same of schema 1.1. `attributes` are further ones, each behind a comma.
std::string nested_node(int id, int rf_id, const std::string& name, const std::string& inputs,
                        const std::string& shapes, const std::string& types, const std::string& outputs,
                        const std::string& attributes = "") {
  return fmt::format(
      R"j({{"id":{},"name":"{}","ctrl_deps":1,"inputs":{{"values":[{}],"shapes":[{}],"types":[{}]}},)j"
      R"j("outputs":{{"values":[{}],"shapes":[[8,8]],"types":["Tensor(float)"]}},)j"
      R"j("attrs":[{{"name":"rf_id","type":"uint64","value":{}}},{{"name":"tid","type":"uint64","value":1}}{}]}})j",
      id, name, inputs, shapes, types, outputs, rf_id, attributes);
}

std::string execution_trace(const std::string& schema, const std::vector<std::string>& nodes, int pid = 0) {
  return fmt::format(R"j({{"schema":"{}","pid":{},"time":"now","start_ts":1,"nodes":[{}],"finish_ts":2}})j", schema,
                     pid, fmt::join(nodes, ","));
}

std::string op(const std::string& name, int thread, int begin, int duration, int id, int pid = 0) {
  std::string event = kineto_event("cpu_op", name, thread, std::to_string(begin), std::to_string(duration),
                                   fmt::format(R"j("External id":{})j", id));
  event.replace(event.find("\"pid\":0"), 7, fmt::format("\"pid\":{}", pid));
  return event;
}

// An operator with its launch and kernel.
void add(std::vector<std::string>& events, const std::string& name, int begin, int id, int stream, int start,
         int duration, int pid = 0, const std::string& kernel = "") {
  events.push_back(op(name, 1, begin, 8, id, pid));
  events.push_back(
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, std::to_string(begin + 1), "2", correlation(100 + id)));
  events.push_back(kineto_event("kernel", kernel.empty() ? "k_" + name.substr(6) : kernel, stream,
                                std::to_string(start), std::to_string(duration),
                                gpu_args(stream, 100 + id, kSmallLaunch)));
}

// mm on stream 7, relu of its result on stream 8, add on stream 7 of relu's.
std::vector<std::string> three_operators(int pid = 0) {
  std::vector<std::string> events;
  add(events, "aten::mm", 0, 11, 7, 20, 10, pid);
  add(events, "aten::relu", 10, 12, 8, 31, 10, pid);
  add(events, "aten::add", 20, 13, 7, 42, 10, pid);
  return events;
}

std::vector<std::string> three_nodes(int first_id = 11, int thread = 1) {
  const std::string two = R"j("Tensor(float)","Tensor(float)")j";
  return {
      flat_node(1, 0, thread, "[pytorch|profiler|execution_trace|thread]", "", "", "", ""),
      flat_node(2, first_id, thread, "aten::mm", tensor(10, 64) + "," + tensor(20, 64), "[8,8],[8,8]", two,
                tensor(30, 64)),
      flat_node(5, first_id + 1, thread, "aten::relu", tensor(30, 64), "[8,8]", R"j("Tensor(float)")j", tensor(40, 64)),
      flat_node(7, first_id + 2, thread, "aten::add", tensor(40, 64) + ",1", "[8,8],[]", R"j("Tensor(float)","Int")j",
                tensor(50, 64))};
}

class ExecutionImport : public ::testing::Test {
 protected:
  Trace import(const std::vector<std::string>& files) {
    std::vector<std::filesystem::path> paths;
    for (std::size_t i = 0; i < files.size(); ++i) paths.push_back(folder.write(std::to_string(i) + ".json", files[i]));
    notes.clear();
    return import_execution_traces(paths, notes);
  }

  TemporaryFolder folder;
  std::vector<std::string> notes;
};

TEST_F(ExecutionImport, OperatorsTakeTheirTensorsById) {
  const Trace trace = import({execution_trace("1.0.1", three_nodes()), kineto_trace(three_operators())});
  const std::vector<TraceOp>& ops = trace.ranks.at(0).ops;
  ASSERT_EQ(ops.size(), 3u);
  ASSERT_TRUE(ops[0].launched_by);
  EXPECT_EQ(ops[0].launched_by->name, "aten::mm");
  EXPECT_THAT(ops[0].launched_by->inputs, ElementsAre(OperatorInput{4, {8, 8}}, OperatorInput{4, {8, 8}}));
  EXPECT_THAT(ops[2].launched_by->inputs, ElementsAre(OperatorInput{4, {8, 8}}, OperatorInput{}));
  EXPECT_THAT(notes, ElementsAre());
}

TEST_F(ExecutionImport, StreamsWaitForTensorsThatOthersWrote) {
  std::vector<std::string> events = three_operators();
  add(events, "aten::relu", 30, 14, 8, 60, 5);  // of the same tensor: the stream has waited for it
  std::vector<std::string> nodes = three_nodes();
  nodes.push_back(flat_node(9, 14, 1, "aten::relu", tensor(30, 64), "[8,8]", R"j("Tensor(float)")j", tensor(60, 64)));
  const std::vector<TraceOp> ops = import({execution_trace("1.0.1", nodes), kineto_trace(events)}).ranks.at(0).ops;
  EXPECT_THAT(ops[0].waits, ElementsAre());
  EXPECT_THAT(ops[1].waits, ElementsAre(0u));
  EXPECT_THAT(ops[2].waits, ElementsAre(1u));
  EXPECT_THAT(ops[3].waits, ElementsAre());
}

TEST_F(ExecutionImport, WaitsThatTimesContradictAreLeftOut) {
  std::vector<std::string> events;
  add(events, "aten::mm", 0, 11, 7, 20, 30);
  add(events, "aten::relu", 10, 12, 8, 31, 10);
  add(events, "aten::add", 20, 13, 7, 52, 10);
  const std::vector<TraceOp> ops =
      import({execution_trace("1.0.1", three_nodes()), kineto_trace(events)}).ranks.at(0).ops;
  EXPECT_THAT(ops[1].waits, ElementsAre());
}

TEST_F(ExecutionImport, NodesOfSchema11HaveCollectivesAndListsOfTensors) {
  std::vector<std::string> events;
  add(events, "aten::cat", 0, 11, 7, 20, 10);
  add(events, "record_param_comms", 10, 12, 20, 40, 10, 0, "ncclKernel_AllReduce_RING_LL_Sum_float(x)");
  const std::string list = "[" + tensor(10, 64) + "," + tensor(20, 16) + "]";
  const std::string attributes =
      R"j(,{"name":"collective_name","type":"string","value":"allreduce"},{"name":"dtype","type":"string","value":"Float"},)j"
      R"j({"name":"in_msg_nelems","type":"uint64","value":80},{"name":"global_rank_start","type":"uint64","value":1},)j"
      R"j({"name":"global_rank_stride","type":"uint64","value":2},{"name":"pg_name","type":"string","value":"5"},)j"
      R"j({"name":"pg_size","type":"uint64","value":2})j";
  const Trace trace =
      import({kineto_trace(events, R"j("distributedInfo":{"rank":1,"world_size":4},)j"),
              execution_trace("1.1.1-chakra.0.0.4",
                              {nested_node(2, 11, "aten::cat", list + ",0", "[[8,8],[16]],[]",
                                           R"j("GenericList[Tensor(float),Tensor(float)]","Int")j", tensor(30, 80)),
                               nested_node(3, 12, "record_param_comms", "[" + tensor(30, 80) + "],0", "[[80]],[]",
                                           R"j("GenericList[Tensor(float)]","Int")j", tensor(30, 80), attributes)})});
  const std::vector<TraceOp>& ops = trace.ranks.at(0).ops;
  EXPECT_THAT(ops[0].launched_by->inputs,
              ElementsAre(OperatorInput{4, {8, 8}}, OperatorInput{4, {16}}, OperatorInput{}));
  ASSERT_TRUE(ops[1].collective);
  EXPECT_EQ(ops[1].collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(ops[1].collective->elements, 80);
  EXPECT_EQ(ops[1].collective->type, DataType::fp32);
  EXPECT_EQ(ops[1].collective->group_name, "5");
  EXPECT_THAT(ops[1].collective->group_ranks, ElementsAre(1u, 3u));
  EXPECT_THAT(ops[1].waits, ElementsAre(0u));
}

TEST_F(ExecutionImport, OtherStepsAreJoinedByTheOrderOfOperators) {
  // Two steps of the profile; the execution trace is of an earlier one.
  std::vector<std::string> events = {op("ProfilerStep", 1, 0, 1, 40)};
  for (int step = 0; step < 2; ++step) {
    const int t = step * 100, id = 50 + step * 20;
    add(events, "aten::mm", t + 2, id, 7, t + 20, 10);
    add(events, "aten::relu", t + 12, id + 1, 8, t + 31, 10);
    add(events, "aten::add", t + 22, id + 2, 7, t + 42, 10);
  }
  const std::vector<TraceOp> ops =
      import({execution_trace("1.0.1", three_nodes(3, 2)), kineto_trace(events)}).ranks.at(0).ops;
  ASSERT_EQ(ops.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(ops[i].launched_by) << i;
  EXPECT_THAT(ops[4].waits, ElementsAre(3u));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("6 of 7 operators are in")));
}

TEST_F(ExecutionImport, RanksAreJoinedByProcess) {
  const auto profile = [](int rank) {
    return kineto_trace(three_operators(70 + rank),
                        fmt::format(R"j("distributedInfo":{{"rank":{},"world_size":2}},)j", rank));
  };
  std::vector<std::string> wide = three_nodes();
  wide[1] = flat_node(2, 11, 1, "aten::mm", tensor(10, 64) + "," + tensor(20, 128), "[8,8],[8,16]",
                      R"j("Tensor(float)","Tensor(float)")j", tensor(30, 64));
  const Trace trace =
      import({execution_trace("1.0.1", wide, 71), execution_trace("1.0.1", three_nodes(), 70), profile(0), profile(1)});
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.ranks[0].ops[0].launched_by->inputs[1].sizes[1], 8);
  EXPECT_EQ(trace.ranks[1].ops[0].launched_by->inputs[1].sizes[1], 16);
}

TEST_F(ExecutionImport, RefusesExecutionTracesAlone) {
  EXPECT_THAT(input_error([&] { (void)import({execution_trace("1.0.1", three_nodes())}); }),
              AllOf(HasSubstr("an execution trace, which has no times"), HasSubstr("got 1 of the former and 0")));
  EXPECT_THAT(input_error([&] { (void)import({kineto_trace(three_operators())}); }), HasSubstr("got 0 of the former"));
}

TEST_F(ExecutionImport, RefusesWhatDoesNotBelongTogether) {
  std::vector<std::string> events;
  add(events, "aten::conv2d", 0, 1, 7, 20, 10);
  EXPECT_THAT(input_error([&] {
                (void)import({execution_trace("1.0.1", three_nodes()), kineto_trace(events)});
              }),
              AllOf(HasSubstr("1.json: expected the operators of"), HasSubstr("0.json"), HasSubstr("got 1 others")));
}

TEST_F(ExecutionImport, NamesTheNodeThatIsWrong) {
  const std::string profile = kineto_trace(three_operators());
  const auto error = [&](const std::string& trace) { return input_error([&] { (void)import({trace, profile}); }); };
  EXPECT_THAT(error(R"j({"nodes":[{"id":3}]})j"), HasSubstr("/nodes/0: expected a \"name\", got none"));
  EXPECT_THAT(error(R"j({"nodes":[17]})j"), HasSubstr("/nodes/0: expected a node"));
  std::vector<std::string> twice = three_nodes();
  twice.push_back(twice.back());
  EXPECT_THAT(error(execution_trace("1.0.1", twice)), HasSubstr("expected each \"rf_id\" once, got 13"));
}

}  // namespace
}  // namespace weft
