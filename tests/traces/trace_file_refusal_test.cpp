// Files of traces that are refused, and what is said then.
#include <gmock/gmock.h>

#include "tests/traces/temporary_file.h"
#include "tests/traces/trace_of_all.h"
#include "traces/packed_file.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using testing::content_of;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

// Reads the trace's file after one replacement in its text.
std::string error_after(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  write_trace(trace_of_all(), folder.file("t.json"));
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
  EXPECT_THAT(error_after(",3,3]", ",4,3]"), HasSubstr("expected a distance from 1 to below 4 of a shift"));
  EXPECT_THAT(error_after(",3,3]", ",3,4]"), HasSubstr("first of a shift or send_receive within a group of 4"));
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
  write_trace(trace_of_all(), folder.file("t.json.gz"));
  const std::string packed = content_of(folder.file("t.json.gz"));
  const auto cut = folder.write("cut.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(input_error([&] { (void)read_trace(cut); }), HasSubstr("truncated"));
}

}  // namespace
}  // namespace weft
