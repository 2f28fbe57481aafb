// What profilers write wrong: put right where it is known, and refused where it is not.
#include "traces/mended_json.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/execution_trace.h"

namespace weft {
namespace {

using testing::gpu_args;
using ::testing::HasSubstr;
using testing::input_error;
using testing::kineto_event;
using testing::kineto_trace;
using testing::TemporaryFolder;

TEST(MendedJson, NumbersThatAreNone) {
  EXPECT_EQ(mended_json(R"({"a": inf, "b": -nan,"c":N/A,"d":[-Infinity,NaN,-nan(ind)]})"),
            R"({"a": null, "b": null,"c":null,"d":[null,null,null]})");
  const std::string right = R"({"inf": "nan", "n/a": [true, false, null, -1.5e-3, 0]})";
  EXPECT_EQ(mended_json(right), right);
}

// A comma between digits is one only where a key would have to follow.
TEST(MendedJson, DecimalCommas) {
  EXPECT_EQ(mended_json(R"({"blocks per SM": 7,757576,"warps per SM": -31,03e2})"),
            R"({"blocks per SM": 7.757576,"warps per SM": -31.03e2})");
  EXPECT_EQ(mended_json(R"({"grid":[7,2,1],"a":{"b":1},"c":2})"), R"({"grid":[7,2,1],"a":{"b":1},"c":2})");
  EXPECT_EQ(mended_json(R"([{"a":1,5},2,3])"), R"([{"a":1.5},2,3])");
}

TEST(MendedJson, NamesOfBytesThatAreNoText) {
  EXPECT_EQ(mended_json("\"config.py(0): \xf0\xc7\x80!\""), R"("config.py(0): ???!")");
  EXPECT_EQ(mended_json("\"a\tb\x01\""), R"("a b ")");
  EXPECT_EQ(mended_json("\"\xc3\xa4\""), "\"\xc3\xa4\"");
}

TEST(MendedJson, BackslashesOfPaths) {
  EXPECT_EQ(mended_json(R"("C:\Users\q\x.py \u00e4 \" \\ \n")"), R"("C:\\Users\\q\\x.py \u00e4 \" \\ \n")");
  EXPECT_EQ(mended_json(R"("\u12")"), R"("\\u12")");
}

TEST(MendedJson, KeysWithoutAValue) {
  EXPECT_EQ(mended_json(R"({"Process Group Description": , "a":,"b": })"),
            R"({"Process Group Description": null, "a":null,"b": null})");
  EXPECT_EQ(mended_json(R"({"a":":,","b":[1,]})"), R"({"a":":,","b":[1,]})");
}

TEST(MendedJson, WhatIsCutOffStays) {
  for (const std::string cut : {"\"a", "\"a\\", "{\"a\":-", "[1,", "nul", ""}) {
    EXPECT_EQ(mended_json(cut).substr(0, cut.size()), cut);
  }
}

std::string kernel_with(const std::string& name, const std::string& args) {
  return kineto_trace({kineto_event("kernel", name, 7, "1", "2", gpu_args(7, 1, args)),
                       kineto_event("kernel", "next", 7, "4", "2", gpu_args(7, 2))});
}

TEST(MendedJson, KinetoFilesAreImported) {
  const TemporaryFolder folder;
  for (const std::string& text : {kernel_with("k", R"("bandwidth": inf)"), kernel_with("k", R"("bandwidth": 7,757576)"),
                                  kernel_with("k", R"("Process Group Description": ,"a":1)"), kernel_with("k\xff", ""),
                                  kernel_with("C:\\q", ""), "\xEF\xBB\xBF" + kernel_with("k", "")}) {
    const Trace trace = import_kineto({folder.write("t.json", text)});
    ASSERT_EQ(trace.ranks.at(0).ops.size(), 2u) << text;
    EXPECT_EQ(trace.ranks[0].ops[1].name, "next");
  }
  const std::string refused =
      input_error([&] { (void)import_kineto({folder.write("bad.json", kernel_with("k", R"("bandwidth": fast)"))}); });
  EXPECT_THAT(refused, HasSubstr("/traceEvents/0"));
}

TEST(MendedJson, ExecutionTracesAreRead) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("et.json", R"({"schema":"1.1.1-chakra.0.0.4","pid":1,"nodes":[)"
                              R"({"id":2,"name":"aten::masked_fill_","ctrl_deps":1,"inputs":{"values":[-inf],)"
                              R"("shapes":[[]],"types":["Double"]},"outputs":{"values":[],"shapes":[],)"
                              R"("types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":1}]}]})");
  EXPECT_EQ(read_execution_trace(file).nodes.size(), 1u);
}

}  // namespace
}  // namespace weft
