#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/temporary_file.h"
#include "traces/chakra_import.h"
#include "traces/chakra_weft.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

// What Chakra's feeder and ASTRA-sim's Workload ask of a file: ids once, dependencies there and not in a circle, a type
// that is known; of communication that it is not on the host and has a kind, a size and a group that is known.
void expect_accepted(const ChakraFile& file, std::size_t groups) {
  std::map<std::uint64_t, const ChakraNode*> nodes;
  for (const ChakraNode& node : file.nodes) EXPECT_TRUE(nodes.emplace(node.id, &node).second) << node.id;
  for (const ChakraNode& node : file.nodes) {
    std::set<std::uint64_t> once(node.data_dependencies.begin(), node.data_dependencies.end());
    EXPECT_EQ(once.size(), node.data_dependencies.size()) << node.id;
    for (const std::uint64_t id : node.data_dependencies) {
      ASSERT_TRUE(nodes.contains(id)) << node.id << " depends on " << id;
      EXPECT_LT(id, node.id);  // so there is no circle
    }
    const bool* host = node.attributes.find<bool>("is_cpu_op");
    ASSERT_NE(host, nullptr) << node.id;
    ASSERT_TRUE(node.type == ChakraType::compute || node.type == ChakraType::collective) << node.id;
    if (node.type == ChakraType::compute) continue;
    EXPECT_FALSE(*host);
    const std::int64_t kind = node.attributes.integer("comm_type", -1);
    EXPECT_TRUE(kind == 0 || kind == 2 || kind == 5 || kind == 6 || kind == 7) << kind;
    EXPECT_GE(node.attributes.integer("comm_size", -1), 0) << node.id;
    if (node.attributes.find<std::string>("pg_name") != nullptr) {
      const int group = std::stoi(node.attributes.text("pg_name"));
      EXPECT_GE(group, 1);
      EXPECT_LE(static_cast<std::size_t>(group), groups);
    }
  }
}

TraceOp op(TraceOpKind kind, std::uint32_t stream, double issued_us, double start_us, double duration_us) {
  TraceOp out;
  out.kind = kind;
  out.name = to_string(CollectiveKind::all_reduce);
  out.iteration = 0;
  out.stream = stream;
  out.issued = microseconds(issued_us);
  out.start = microseconds(start_us);
  out.duration = microseconds(duration_us);
  return out;
}

// Two ranks of four; a kernel with all there is to know, a collective of the world, one of a pair, one without a size,
// a wait of the host.
Trace small_trace() {
  Trace trace;
  trace.source = "t.json";
  trace.world_size = 4;
  for (const std::uint32_t number : {1u, 3u}) {
    TraceRank rank;
    rank.rank = number;
    rank.device = "GPU";
    rank.compute_units = 108;
    rank.iterations = {{"ProfilerStep#1", Time(), microseconds(100)}};
    TraceOp kernel = op(TraceOpKind::kernel, 7, 10.6, 20, 5.4);
    kernel.op = "aten::mm";
    kernel.layer = "fc";
    kernel.phase = TrainingPhase::backward;
    kernel.correlation = 12;
    kernel.issue_duration = microseconds(3);
    kernel.shape = LaunchShape{{4, 2, 1}, {128, 1, 1}, 40, 1024};
    kernel.launched_by =
        std::make_shared<OperatorCall>(OperatorCall{"aten::mm", {{4, {64, 256}}, {4, {256, 128}}, {0, {}}}});
    rank.clock_moved = Time(-3);
    rank.traffic.start = {Time(5)};
    rank.traffic.duration = {Time(7)};
    rank.traffic.bytes[1] = {11};
    KernelCounters counters;
    counters[KernelCounter::l2_read_bytes] = 123'456;
    kernel.counters = std::make_shared<const KernelCounters>(counters);
    TraceOp world = op(TraceOpKind::collective, 9, 11.2, 26, 50);
    world.collective = TraceCollective{CollectiveKind::all_reduce, 1000, DataType::fp16, 4, {0, 1, 2, 3}, "0"};
    world.waits = {0};
    TraceOp pair = op(TraceOpKind::collective, 9, 12, 77, 3);
    pair.collective = TraceCollective{
        CollectiveKind::all_gather, 10, DataType::fp32, 2, {1, 3}, "pair", 1, std::nullopt, "RING", "LL", 8};
    TraceOp unknown = op(TraceOpKind::collective, 9, 13, 81, 3);
    unknown.collective = TraceCollective{CollectiveKind::all_reduce, std::nullopt, std::nullopt, 0, {}, ""};
    unknown.collective->kind = CollectiveKind::shift;
    unknown.collective->distance = 3;
    unknown.collective->first = 3;
    TraceOp wait = op(TraceOpKind::host_wait, 0, 14, 14, 70);
    wait.waits = {1, 3};
    TraceOp copy = op(TraceOpKind::copy, 7, 90, 91, 0.3);
    copy.bytes = Bytes(100);
    copy.copy_direction = "HtoD";
    rank.ops = {kernel, world, pair, unknown, wait, copy};
    trace.ranks.push_back(rank);
  }
  return trace;
}

TEST(ChakraExport, WritesWhatReadersAskFor) {
  const Trace trace = small_trace();
  const ChakraGroups groups = groups_of(trace);
  ASSERT_EQ(groups, (ChakraGroups{{1, 3}}));
  std::size_t replayed = 0;
  const ChakraFile file = chakra_of_rank(trace, 0, groups, replayed);
  expect_accepted(file, groups.size());
  EXPECT_EQ(replayed, 1u);
  EXPECT_EQ(file.nodes.size(), 12u);
  EXPECT_EQ(file.nodes[3].attributes.integer("comm_size", 0), 2000);
  EXPECT_EQ(file.nodes[3].attributes.find<std::string>("pg_name"), nullptr);  // the whole world
  EXPECT_EQ(file.nodes[5].attributes.text("pg_name"), "1");
  EXPECT_EQ(file.nodes[7].type, ChakraType::compute);
}

// Host nodes last as long as the host took: 20 us of GPU work that nobody waits for is not in between.
TEST(ChakraExport, KeepsTheHostsTime) {
  std::size_t replayed = 0;
  const ChakraFile file = chakra_of_rank(small_trace(), 0, {}, replayed);
  std::uint64_t host = 0;
  for (const ChakraNode& node : file.nodes)
    if (*node.attributes.find<bool>("is_cpu_op")) host += node.duration_us;
  EXPECT_EQ(host, 3u + 6u);  // from 11 to 14 us, and from the end of the wait at 84 to the copy's launch at 90
}

TEST(ChakraExport, ReadsBackTheSameTrace) {
  const TemporaryFolder folder;
  const Trace trace = small_trace();
  std::vector<std::string> notes;
  const auto files = export_chakra(trace, folder.file("run"), notes);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[1].filename(), "run.3.et");
  EXPECT_EQ(nlohmann::json::parse(content_of(files[2])), nlohmann::json::parse(R"({"1": [1, 3]})"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("2 collectives"));
  write_trace(trace, folder.file("a.json"));
  write_trace(import_chakra({files[1], files[0]}, notes), folder.file("b.json"));
  EXPECT_EQ(content_of(folder.file("a.json")), content_of(folder.file("b.json")));
}

TEST(ChakraExport, RefusesRecordsThatAreNotItsOwn) {
  std::size_t replayed = 0;
  const ChakraFile whole = chakra_of_rank(small_trace(), 0, {}, replayed);
  const TemporaryFolder folder;
  const auto error = [&](const char* name, ChakraValue value) {
    ChakraFile file = whole;
    ChakraAttributes attributes;
    attributes.set(name, std::move(value));  // the first of a name counts
    for (const auto& [key, old] : file.nodes[1].attributes.all()) attributes.set(key, old);
    file.nodes[1].attributes = attributes;
    write_chakra(file, folder.file("t.et"));
    std::vector<std::string> notes;
    return input_error([&] { (void)import_chakra({folder.file("t.et")}, notes); });
  };
  EXPECT_THAT(error("kind", std::string("x")), HasSubstr("node 2: expected a known \"kind\""));
  EXPECT_THAT(error("times_fs", std::vector<std::int64_t>{1, 2}), HasSubstr("4 numbers"));
  EXPECT_THAT(error("times_fs", std::vector<std::int64_t>{1, 2, -3, 4}), HasSubstr("at least 0"));
  EXPECT_THAT(error("launch", std::vector<std::int64_t>{-1, 1, 1, 1, 1, 1, 1, 1}), HasSubstr("from 0 to 2^32 - 1"));
  EXPECT_THAT(error("counters", std::vector<std::int64_t>{1, 2}), HasSubstr("11 numbers"));
  EXPECT_THAT(error("iteration", std::int64_t{5}), HasSubstr("iteration below 1"));
  EXPECT_THAT(error("input_element_bytes", std::vector<std::int64_t>{4}), HasSubstr("3 numbers"));
}

std::filesystem::path shared_traces() { return std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/traces"; }

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "reference input " << (path) << " is not there"

TEST(ChakraExportValidation, TheResNet50StepIsAcceptedAndComesBack) {
  const auto kineto = shared_traces() / "kineto/hta_nccl_data.json.gz";
  SKIP_WITHOUT(kineto);
  const Trace trace = import_kineto({kineto});
  std::size_t replayed = 0;
  const ChakraFile file = chakra_of_rank(trace, 0, groups_of(trace), replayed);
  expect_accepted(file, 0);
  EXPECT_EQ(replayed, 0u);
  EXPECT_EQ(file.nodes.size(), 2 * trace.ranks[0].ops.size());
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  const auto files = export_chakra(trace, folder.file("run"), notes);
  write_trace(trace, folder.file("a.json"));
  write_trace(import_chakra({files[0]}, notes), folder.file("b.json"));
  EXPECT_EQ(content_of(folder.file("a.json")), content_of(folder.file("b.json")));
}

struct ChakraCase {
  const char* file;
  std::size_t kernels, collectives;
  const char* note;
};

class ChakraImportValidation : public ::testing::TestWithParam<ChakraCase> {};

// Counted in the files with another program: nodes that are not of the host.
TEST_P(ChakraImportValidation, ImportsTheWholeFile) {
  const auto file = shared_traces() / "chakra" / GetParam().file;
  SKIP_WITHOUT(file);
  std::vector<std::string> notes;
  const Trace trace = import_chakra({file}, notes);
  std::size_t kernels = 0;
  std::size_t collectives = 0;
  for (const TraceOp& o : trace.ranks[0].ops) {
    if (o.kind == TraceOpKind::kernel) ++kernels;
    if (o.kind == TraceOpKind::collective) ++collectives;
  }
  EXPECT_EQ(kernels, GetParam().kernels);
  EXPECT_EQ(collectives, GetParam().collectives);
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], HasSubstr(GetParam().note));
}

INSTANTIATE_TEST_SUITE_P(
    All, ChakraImportValidation,
    ::testing::Values(ChakraCase{"chakra.0.et", 1209, 7, "1277 dependencies on 210 nodes that are not there"},
                      ChakraCase{"workload_graph.json.gz", 1209, 7, "7 collectives have no size"},
                      ChakraCase{"workload_graph_small.json", 1, 1, "7 dependencies on 3 nodes that are not there"}));

TEST(ChakraRefusalValidation, SaysThatATraceIsOfPyTorch) {
  const auto file = shared_traces() / "chakra/1.0.2-chakra.0.0.4.json";
  SKIP_WITHOUT(file);
  std::vector<std::string> notes;
  EXPECT_THAT(input_error([&] { (void)import_chakra({file}, notes); }), HasSubstr("execution trace of PyTorch"));
}

}  // namespace
}  // namespace weft
