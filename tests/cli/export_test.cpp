// A run's timeline for other tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cli/output/chrome_trace.h"
#include "cli/output/timeline.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(ChromeTrace, HoldsTheSlicesFlowsAndCountersOfTheTimeline) {
  const RunResult result = testing::sample_result({2, 1, false});
  const Json trace = parse_json(chrome_trace(timeline_trace(result), "sample"), "chrome");
  std::map<std::string, std::size_t> phases;  // ph of the format
  std::map<std::uint64_t, std::string> flows;
  std::set<std::string> names;
  for (const Json& event : trace.at("traceEvents")) {
    ++phases[event.at("ph")];
    if (event.contains("id")) flows[event.at("id")] += event.at("ph").get<std::string>();
    if (event.at("ph") == "M" && event.at("args").contains("name")) names.insert(event.at("args").at("name"));
  }
  EXPECT_EQ(phases["X"], result.operations.size() + 2 * 3);  // and the phases of each GPU
  EXPECT_EQ(flows.size(), result.collectives.size());
  for (const auto& [id, steps] : flows) EXPECT_EQ(steps, "sf");
  EXPECT_EQ(phases["C"], 2U * 600);
  for (const char* name : {"GPU 1", "stream 1 (communication)", "phases"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(ChromeTrace, ASliceKeepsItsTimesAndNotes) {
  RunResult result;
  OperationRecord op;
  op.name = "gemm";
  op.start_s = 10e-6;
  op.end_s = 13.5e-6;
  op.isolated_s = 2e-6;
  result.operations = {op};
  const Json trace = parse_json(chrome_trace(timeline_trace(result), "one"), "chrome");
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_EQ(event.at("name"), "gemm");
    EXPECT_EQ(event.at("cat"), "compute,other");
    EXPECT_DOUBLE_EQ(event.at("ts"), 10);
    EXPECT_DOUBLE_EQ(event.at("dur"), 3.5);
    EXPECT_DOUBLE_EQ(event.at("args").at("isolated_us"), 2);
  }
}

TEST(ChromeTrace, WhatIsNoTimelineIsRefused) {
  EXPECT_THROW(static_cast<void>(chrome_trace("no trace", "x")), InputError);
  EXPECT_THROW(static_cast<void>(chrome_trace("", "x")), InputError);
}

TEST(ExportEndToEnd, WritesTheTimelineOfARun) {
  const TemporaryFolder folder;
  folder.write("e.json",
               R"({"system": "hgx-h100", "gpus": 2, "workload": {"collective": "all_reduce", "bytes": 4096}})");
  ASSERT_EQ(weft("run e.json -o run", folder).code, 0);
  EXPECT_EQ(weft("export perfetto run -o t.pftrace", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "t.pftrace"), read_file(folder.path() / "run" / "timeline.pftrace"));
  EXPECT_EQ(weft("export perfetto run --chrome -o t.json", folder).code, 0);
  EXPECT_GT(parse_json(read_file(folder.path() / "t.json"), "t.json").at("traceEvents").size(), 10U);

  const Ran none = weft("export perfetto nowhere -o x", folder);
  EXPECT_EQ(none.code, 66);
  EXPECT_THAT(none.errors, HasSubstr("nowhere"));
  folder.write("run/timeline.pftrace", "broken");
  EXPECT_EQ(weft("export perfetto run -o x", folder).code, 65);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x"));
}

}  // namespace
}  // namespace weft
