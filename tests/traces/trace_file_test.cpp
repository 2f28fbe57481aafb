#include "traces/trace_file.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/traces/temporary_file.h"
#include "tests/traces/trace_of_all.h"
#include "traces/packed_file.h"

namespace weft {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

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
  EXPECT_EQ(a.collective->distance, b.collective->distance);
  EXPECT_EQ(a.collective->first, b.collective->first);
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
  const Trace trace = trace_of_all();
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
      EXPECT_EQ(read.ranks[r].clock_moved, trace.ranks[r].clock_moved);
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
  write_trace(trace_of_all(), folder.file("a.json.gz"));
  write_trace(read_trace(folder.file("a.json.gz")), folder.file("b.json.gz"));
  EXPECT_EQ(content_of(folder.file("a.json.gz")), content_of(folder.file("b.json.gz")));
}

TEST(TraceFile, ReadsTracesWithoutOperators) {
  const TemporaryFolder folder;
  write_trace(trace_of_all(), folder.file("t.json"));
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
  Trace trace = trace_of_all();
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

TEST(TraceFile, DoesNotWriteAnInvalidTrace) {
  const TemporaryFolder folder;
  Trace trace = trace_of_all();
  trace.ranks[0].ops[0].duration = Time(-1);
  EXPECT_THAT(input_error([&] { write_trace(trace, folder.file("t.json")); }), HasSubstr("duration of at least 0"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("t.json")));
}

}  // namespace
}  // namespace weft
