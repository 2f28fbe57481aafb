#include "traces/trace_file.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/traces/temporary_file.h"
#include "traces/packed_file.h"

namespace weft {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

Trace small_trace() {
  Trace trace;
  trace.source = "a \"quoted\" näme.json";
  trace.world_size = 4;
  TraceRank rank;
  rank.rank = 1;
  rank.device = "NVIDIA A100";
  rank.compute_units = 108;
  rank.memory_bytes = 42'297'524'224;
  rank.iterations = {{"ProfilerStep#4", Time(0), Time(5'000)},
                     {"ProfilerStep#5", Time(5'000), Time(9'007'199'254'740'993)}};
  rank.traffic.start = {Time(3), Time(20)};
  rank.traffic.duration = {Time(17), Time(9'007'199'254'740'993)};
  rank.traffic.bytes[0] = {9'007'199'254'740'993, 0};
  rank.traffic.bytes[3] = {1, 2};
  TraceOp kernel;
  kernel.name = "void kernel<float>(int)";
  kernel.op = "aten::conv2d";
  kernel.layer = "layer1";
  kernel.phase = TrainingPhase::forward;
  kernel.iteration = 0;
  kernel.stream = 7;
  kernel.correlation = 12;
  kernel.issued = Time(1);
  kernel.issue_duration = Time(2);
  kernel.start = Time(9'007'199'254'740'993);  // needs more digits than a double has
  kernel.duration = Time(17);
  KernelCounters counters;
  counters[KernelCounter::hbm_read_bytes] = 9'007'199'254'740'993;
  counters[KernelCounter::tensor_fp16_ops] = 0;
  kernel.counters = std::make_shared<const KernelCounters>(counters);
  kernel.shape = LaunchShape{{7, 8, 32}, {256, 1, 1}, 40, 4224, 8};
  kernel.launched_by =
      std::make_shared<OperatorCall>(OperatorCall{"aten::mm", {{4, {64, 256}}, {4, {256, 128}}, {0, {}}}});
  TraceOp copy;
  copy.kind = TraceOpKind::copy;
  copy.name = "Memcpy DtoD";
  copy.copy_direction = "DtoD";
  copy.bytes = Bytes(4096);
  copy.issued = Time(3);
  TraceOp collective;
  collective.kind = TraceOpKind::collective;
  collective.name = "ncclKernel";
  collective.issued = Time(4);
  collective.iteration = 1;
  collective.phase = TrainingPhase::backward;
  collective.collective = TraceCollective{
      CollectiveKind::all_reduce, 25'557'032, DataType::bf16, 2, {1, 3}, "group 0", "RING", "LL128", 24};
  collective.waits = {0, 1};
  TraceOp old_collective = collective;
  old_collective.collective = TraceCollective{};
  old_collective.waits = {2};
  TraceOp wait;
  wait.kind = TraceOpKind::host_wait;
  wait.name = "cudaDeviceSynchronize";
  wait.issued = Time(8);
  wait.waits = {0, 2};
  rank.ops = {kernel, copy, collective, old_collective, wait};
  trace.ranks.push_back(rank);
  rank.rank = 3;
  rank.ops.clear();
  trace.ranks.push_back(rank);
  return trace;
}

void expect_equal(const TraceOp& a, const TraceOp& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.layer, b.layer);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.iteration, b.iteration);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.correlation, b.correlation);
  EXPECT_EQ(a.issued, b.issued);
  EXPECT_EQ(a.issue_duration, b.issue_duration);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.duration, b.duration);
  EXPECT_EQ(a.shape, b.shape);
  ASSERT_EQ(a.launched_by == nullptr, b.launched_by == nullptr);
  if (a.launched_by) {
    EXPECT_EQ(*a.launched_by, *b.launched_by);
  }
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.copy_direction, b.copy_direction);
  EXPECT_EQ(a.waits, b.waits);
  ASSERT_EQ(a.collective.has_value(), b.collective.has_value());
  if (!a.collective) return;
  EXPECT_EQ(a.collective->kind, b.collective->kind);
  EXPECT_EQ(a.collective->elements, b.collective->elements);
  EXPECT_EQ(a.collective->type, b.collective->type);
  EXPECT_EQ(a.collective->group_size, b.collective->group_size);
  EXPECT_EQ(a.collective->group_ranks, b.collective->group_ranks);
  EXPECT_EQ(a.collective->group_name, b.collective->group_name);
  EXPECT_EQ(a.collective->algorithm, b.collective->algorithm);
  EXPECT_EQ(a.collective->protocol, b.collective->protocol);
  EXPECT_EQ(a.collective->channels, b.collective->channels);
}

void expect_equal_counters(const TraceOp& a, const TraceOp& b) {
  ASSERT_EQ(a.counters == nullptr, b.counters == nullptr);
  if (a.counters) {
    EXPECT_EQ(*a.counters, *b.counters);
  }
}

TEST(TraceFile, RoundTripsExactly) {
  const TemporaryFolder folder;
  const Trace trace = small_trace();
  for (const char* name : {"t.json", "t.json.gz"}) {
    write_trace(trace, folder.file(name));
    const Trace read = read_trace(folder.file(name));
    EXPECT_EQ(read.source, trace.source);
    EXPECT_EQ(read.world_size, trace.world_size);
    ASSERT_EQ(read.ranks.size(), trace.ranks.size());
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
      EXPECT_EQ(read.ranks[r].rank, trace.ranks[r].rank);
      EXPECT_EQ(read.ranks[r].device, trace.ranks[r].device);
      EXPECT_EQ(read.ranks[r].compute_units, trace.ranks[r].compute_units);
      EXPECT_EQ(read.ranks[r].memory_bytes, trace.ranks[r].memory_bytes);
      ASSERT_EQ(read.ranks[r].iterations.size(), 2u);
      EXPECT_EQ(read.ranks[r].iterations[1].name, "ProfilerStep#5");
      EXPECT_EQ(read.ranks[r].iterations[1].end, trace.ranks[r].iterations[1].end);
      EXPECT_EQ(read.ranks[r].traffic, trace.ranks[r].traffic);
      ASSERT_EQ(read.ranks[r].ops.size(), trace.ranks[r].ops.size());
      for (std::size_t i = 0; i < trace.ranks[r].ops.size(); ++i)
        expect_equal(trace.ranks[r].ops[i], read.ranks[r].ops[i]);
      for (std::size_t i = 0; i < trace.ranks[r].ops.size(); ++i)
        expect_equal_counters(trace.ranks[r].ops[i], read.ranks[r].ops[i]);
    }
  }
}

TEST(TraceFile, WritesTheSameBytesAgain) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.file("a.json.gz"));
  write_trace(read_trace(folder.file("a.json.gz")), folder.file("b.json.gz"));
  EXPECT_EQ(content_of(folder.file("a.json.gz")), content_of(folder.file("b.json.gz")));
}

TEST(TraceFile, ReadsTracesWithoutOperators) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.file("t.json"));
  std::string text = content_of(folder.file("t.json"));
  for (const char* key : {"\"operators\":[", "\"operator\":["}) {
    const std::size_t at = text.find(key);
    ASSERT_NE(at, std::string::npos);
    const std::size_t end = text.find(std::string(key) == "\"operators\":[" ? "\"ranks\"" : "\"bytes\"", at);
    text.erase(at, end - at);
  }
  const Trace trace = read_trace(folder.write("old.json", text));
  EXPECT_EQ(trace.ranks[0].ops[0].launched_by, nullptr);
}

TEST(TraceFile, HasNoWordOfCountersWhereThereAreNone) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  for (TraceRank& rank : trace.ranks) {
    for (TraceOp& op : rank.ops) op.counters.reset();
    rank.traffic = {};
  }
  write_trace(trace, folder.file("t.json"));
  EXPECT_EQ(content_of(folder.file("t.json")).find("counters"), std::string::npos);
  EXPECT_EQ(content_of(folder.file("t.json")).find("traffic"), std::string::npos);
  EXPECT_EQ(read_trace(folder.file("t.json")).ranks[0].traffic.size(), 0u);
}

TEST(TraceFile, SaysThatAFileIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THROW((void)read_trace(folder.file("none.json")), MissingInput);
}

// Reads the small trace's file after one replacement in its text.
std::string error_after(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.file("t.json"));
  std::string text = content_of(folder.file("t.json"));
  const std::size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "no " << from << " in " << text;
    return {};
  }
  const auto changed = folder.write("changed.json", text.replace(at, from.size(), to));
  const std::string message = input_error([&] { (void)read_trace(changed); });
  EXPECT_THAT(message, HasSubstr("changed.json"));
  return message;
}

TEST(TraceFile, RefusesOtherSchemas) {
  EXPECT_THAT(error_after("weft-trace/1", "weft-trace/9"),
              HasSubstr("expected \"weft-trace/1\", got \"weft-trace/9\""));
  EXPECT_THAT(error_after("\"schema\":\"weft-trace/1\",", ""), HasSubstr("not a weft trace"));
}

TEST(TraceFile, RefusesWhatIsNoJson) {
  EXPECT_THAT(error_after("{\"schema\"", "{schema"), HasSubstr("expected JSON"));
  EXPECT_THAT(error_after("]}\n", "]"), HasSubstr("expected JSON"));
}

TEST(TraceFile, RefusesNegativeTimes) {
  EXPECT_THAT(error_after("\"duration_fs\":[17", "\"duration_fs\":[-17"), HasSubstr("/ranks/0/ops/duration_fs/0"));
  EXPECT_THAT(error_after("\"issued_fs\":[1", "\"issued_fs\":[-1"), HasSubstr("got -1"));
}

TEST(TraceFile, RefusesTrafficThatCannotBe) {
  const auto starts = [](const std::string& fs) {
    return error_after("\"start_fs\":[3,20]", "\"start_fs\":[" + fs + "]");
  };
  EXPECT_THAT(starts("3,19"), HasSubstr("/ranks/0/traffic/start_fs/1: expected at least 20 fs, got 19"));
  EXPECT_THAT(starts("20,3"), HasSubstr("/ranks/0/traffic/start_fs/1"));
  EXPECT_THAT(starts("-3,20"), HasSubstr("/ranks/0/traffic/start_fs/0"));
  EXPECT_THAT(starts("3,20,21"), HasSubstr("/ranks/0/traffic/duration_fs: expected 3 values, got 2"));
  EXPECT_THAT(starts("3,9223372036854775807"), HasSubstr("expected an end within 2^63 fs"));
  EXPECT_THAT(error_after("\"duration_fs\":[17,9007199254740993],\n\"hbm", "\"duration_fs\":[0,1],\n\"hbm"),
              HasSubstr("expected a duration above 0"));
  const auto bytes = [](const std::string& column) {
    return error_after("\"hbm_read_bytes\":[9007199254740993,0]", column);
  };
  EXPECT_THAT(bytes("\"hbm_read_bytes\":[1,-1]"), HasSubstr("/ranks/0/traffic/hbm_read_bytes/1"));
  EXPECT_THAT(bytes("\"hbm_read_bytes\":[1,288230376151711745]"), HasSubstr("expected an integer from 0 to"));
  EXPECT_THAT(bytes("\"hbm_read_bytes\":[1,null]"), HasSubstr("expected an integer"));
  EXPECT_THAT(bytes("\"hbm_read_bytes\":[1]"), HasSubstr("expected 2 values, got 1"));
  EXPECT_THAT(bytes("\"l2_read_bytes\":[1,2]"), HasSubstr("l2_read_bytes: expected a key"));
  EXPECT_THAT(error_after("\"traffic\":{", "\"traffic\":[{}],\"x\":{"), HasSubstr("/ranks/0"));
}

TEST(TraceFile, RefusesCountersThatCannotBe) {
  const std::string good = "\"hbm_read_bytes\":[9007199254740993]";
  const auto with = [&](const std::string& column) { return error_after(good, column); };
  EXPECT_THAT(with("\"hbm_read_bytes\":[-1]"), HasSubstr("/ranks/0/counters/hbm_read_bytes"));
  EXPECT_THAT(with("\"hbm_read_bytes\":[1e3]"), HasSubstr("expected an integer"));
  EXPECT_THAT(with("\"hbm_read_bytes\":[288230376151711745]"), HasSubstr("expected an integer from 0 to"));
  EXPECT_THAT(with("\"hbm_read_bytes\":[1,2]"), HasSubstr("expected 1 values, got 2"));
  EXPECT_THAT(with("\"hbm_bytes\":[1]"), HasSubstr("hbm_bytes"));
  EXPECT_THAT(error_after("\"counters\":{\"op\":[0]", "\"counters\":{\"op\":[99]"), HasSubstr("/counters/op"));
  EXPECT_THAT(error_after("\"counters\":{\"op\":[0],", "\"counters\":{"), HasSubstr("/counters/op"));
  EXPECT_THAT(error_after("\"op\":[0],\n\"hbm_read_bytes\":[9007199254740993],\n\"tensor_fp16_ops\":[0]",
                          "\"op\":[0,0],\"fp32_ops\":[1,2]"),
              HasSubstr("expected each operation once"));
  EXPECT_THAT(error_after("\"counters\":{\"op\":[0]", "\"counters\":{\"op\":[1]"),
              HasSubstr("counters of kernels only"));
}

TEST(TraceFile, RefusesIndicesOutsideTheirTables) {
  EXPECT_THAT(error_after("\"name\":[", "\"name\":[9999,"), HasSubstr("/strings, got 9999"));
  EXPECT_THAT(error_after("\"shape\":[0", "\"shape\":[5"), HasSubstr("/shapes"));
  EXPECT_THAT(error_after("\"operator\":[0", "\"operator\":[1"), HasSubstr("index into /operators or -1, got 1"));
  EXPECT_THAT(error_after(",[4,64,256]", ",[4,-64,256]"), HasSubstr("/operators/0"));
  EXPECT_THAT(error_after("\"iteration\":[0", "\"iteration\":[2"), HasSubstr("iteration below 2, got 2"));
  EXPECT_THAT(error_after("\"waits\":[[2,0,1]", "\"waits\":[[2,0,77]"), HasSubstr("existing operation, got number 77"));
  EXPECT_THAT(error_after("\"collectives\":[[2,", "\"collectives\":[[77,"), HasSubstr("from 0 to 4, got 77"));
}

TEST(TraceFile, RefusesWaitsThatFormACycle) {
  EXPECT_THAT(error_after("[2,0,1]", "[2,2]"), HasSubstr("cycle"));
  EXPECT_THAT(error_after("[2,0,1]", "[2,0,4]"), HasSubstr("cycle"));
}

TEST(TraceFile, RefusesGroupsThatDoNotExist) {
  EXPECT_THAT(error_after(",2,[1,3],", ",2,[1,9],"), HasSubstr("group that exists in a world of 4, got rank 9"));
  EXPECT_THAT(error_after(",2,[1,3],", ",2,[2,3],"), HasSubstr("holds rank 1"));
  EXPECT_THAT(error_after(",2,[1,3],", ",3,[1,3],"), HasSubstr("group size of 2"));
}

TEST(TraceFile, RefusesContradictingRanks) {
  EXPECT_THAT(error_after("\"rank\":3", "\"rank\":1"), HasSubstr("each rank once, got 1"));
  EXPECT_THAT(error_after("\"rank\":3", "\"rank\":4"), HasSubstr("below the world size 4, got 4"));
}

TEST(TraceFile, RefusesUnevenColumnsAndUnknownKeys) {
  EXPECT_THAT(error_after("\"stream\":[7,", "\"stream\":["), HasSubstr("expected 5 values, got 4"));
  EXPECT_THAT(error_after("\"stream\":[7,", "\"stream\":[7,7,"), HasSubstr("got more"));
  EXPECT_THAT(error_after("\"count\":5", "\"count\":4000000000"), HasSubstr("expected 4000000000 values"));
  EXPECT_THAT(error_after("\"bytes\":", "\"octets\":"), HasSubstr("/ranks/0/ops/octets"));
}

TEST(TraceFile, RefusesOperationsOutOfOrder) {
  EXPECT_THAT(error_after("\"issued_fs\":[1,3,", "\"issued_fs\":[4,3,"), HasSubstr("order of issue"));
}

TEST(TraceFile, RefusesImpossibleLaunches) {
  EXPECT_THAT(error_after("[7,8,32,256,", "[7,8,32,2048,"), HasSubstr("1024 threads"));
  EXPECT_THAT(error_after("[7,8,32,256,", "[0,8,32,256,"), HasSubstr("at least 1, got 0"));
}

TEST(TraceFile, RefusesTruncatedGzip) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.file("t.json.gz"));
  const std::string packed = content_of(folder.file("t.json.gz"));
  const auto cut = folder.write("cut.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(input_error([&] { (void)read_trace(cut); }), HasSubstr("truncated"));
}

TEST(TraceFile, DoesNotWriteAnInvalidTrace) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  trace.ranks[0].ops[0].duration = Time(-1);
  EXPECT_THAT(input_error([&] { write_trace(trace, folder.file("t.json")); }), HasSubstr("duration of at least 0"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("t.json")));
}

}  // namespace
}  // namespace weft
