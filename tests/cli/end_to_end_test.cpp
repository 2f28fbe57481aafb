// The program from outside: small simulations, the same bytes every time, and bad input that leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "sim/config_file.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kCollective = R"({"system": "hgx-h100", "gpus": 8, "all_reduce": {"algorithm": "in_switch"},
  "workload": {"collective": "all_reduce", "bytes": 1048576}})";

std::string without_engine(const std::filesystem::path& file) {
  Json result = parse_json(read_file(file), "result");
  EXPECT_EQ(result.erase("engine"), 1U);
  return result.dump();
}

TEST(RunEndToEnd, WritesAllFilesOfACollective) {
  const TemporaryFolder folder;
  folder.write("e.json", kCollective);
  const Ran ran = weft("run e.json -o out", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  for (const char* file : {"result.json", "config.json", "kernels.csv", "timeline.pftrace", "report.html"}) {
    EXPECT_GT(std::filesystem::file_size(folder.path() / "out" / file), 0U) << file;
  }
  const Json result = parse_json(read_file(folder.path() / "out" / "result.json"), "result");
  EXPECT_EQ(result.at("status"), "ok");
  ASSERT_EQ(result.at("collectives").size(), 1U);
  EXPECT_EQ(result.at("collectives").at(0).at("algorithm"), "in_switch");
  EXPECT_GT(result.at("collectives").at(0).at("busbw_GBps").get<double>(), 1);
  EXPECT_LT(result.at("collectives").at(0).at("busbw_GBps").get<double>(), 450 * 2 * 7.0 / 9);  // the links' bound
  EXPECT_EQ(result.at("gpus").size(), 8U);
}

// A ring on a fat tree of three levels: the host's memory grows by the GPU, and by not much.
TEST(RunEndToEnd, AGpuMoreTakesAFewHundredKilobytes) {
  const TemporaryFolder folder;
  const auto peak = [&](std::uint32_t gpus) {
    const Ran ran = weft("run '" WEFT_SOURCE_DIR "/configs/experiments/scale_fat_tree.json' --json --set gpus=" +
                             std::to_string(gpus) + " --set workload.bytes=16384",
                         folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result").at("engine").at("peak_rss_bytes").get<double>();
  };
  const double few = peak(64);
  EXPECT_LT((peak(320) - few) / 256, 450e3);
}

TEST(RunEndToEnd, FindsTheSameBytesEveryTimeAndOnAnyNumberOfThreads) {
  const TemporaryFolder folder;
  folder.write("e.json", kCollective);
  ASSERT_EQ(weft("run e.json -o a", folder).code, 0);
  ASSERT_EQ(weft("run e.json -o b --threads 2", folder).code, 0);
  ASSERT_EQ(weft("run a/config.json -o c", folder).code, 0);  // the resolved configuration runs to the same result
  const std::string first = without_engine(folder.path() / "a" / "result.json");
  EXPECT_EQ(without_engine(folder.path() / "b" / "result.json"), first);
  EXPECT_EQ(without_engine(folder.path() / "c" / "result.json"), first);
  EXPECT_EQ(read_file(folder.path() / "a" / "kernels.csv"), read_file(folder.path() / "b" / "kernels.csv"));
  EXPECT_EQ(read_file(folder.path() / "a" / "config.json"), read_file(folder.path() / "c" / "config.json"));
}

TEST(RunEndToEnd, PrintsTheResultOfAnyRunAsJson) {
  const TemporaryFolder folder;
  folder.write("e.json", kCollective);
  const Ran ran = weft("run e.json --json --set all_reduce.algorithm=ring --set gpus=2", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "stdout");
  EXPECT_EQ(result.at("schema"), "weft-result/1");
  EXPECT_EQ(result.at("collectives").at(0).at("algorithm"), "ring");
}

TEST(CollectiveEndToEnd, PrintsARowASizeInTheColumnsOfNcclTests) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 2})");  // no workload: the command brings it
  const Ran ran = weft("collective e.json --collective all_reduce --min 1KiB --max 4KiB --json -j 2", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json rows = parse_json(ran.output, "stdout").at("rows");
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& row = rows.at(i);
    EXPECT_EQ(row.at("size"), 1024 << i);
    EXPECT_EQ(row.at("count"), 256 << i);
    EXPECT_EQ(row.at("type"), "float");
    EXPECT_EQ(row.at("redop"), "sum");
    EXPECT_EQ(row.at("algorithm"), "ring");
    EXPECT_EQ(row.at("protocol"), "LL");
    const double time = row.at("time_us");
    EXPECT_GT(time, 5);
    EXPECT_LT(time, 12);  // two steps of LL behind the start of a kernel
    EXPECT_NEAR(row.at("algbw_GBps").get<double>(), (1024 << i) / time * 1e-3, 1e-9);
  }
  const Ran text = weft("collective e.json --collective all_gather --min 1KiB --max 1KiB --channels 1", folder);
  ASSERT_EQ(text.code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("busbw"));
  EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 3);
}

// A process that drives all GPUs issues to them one after another: no message takes less.
TEST(CollectiveEndToEnd, TheHostsIssueIsTheFloorOfShortMessages) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 8, "host": {"gpus_per_process": 8}})");
  const Ran ran = weft("collective e.json --min 4KiB --max 4KiB --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_NEAR(parse_json(ran.output, "stdout").at("rows").at(0).at("time_us").get<double>(), 8 * 5.25, 1);
}

TEST(CollectiveEndToEnd, WhatCannotBeIsRefused) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 2})");
  EXPECT_EQ(weft("collective e.json --algorithm star", folder).code, 2);
  EXPECT_EQ(weft("collective e.json --min 2KiB --max 1KiB", folder).code, 65);
  const Ran ran = weft("collective e.json --max 1KiB --algorithm in_switch", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, HasSubstr("switch_reduce"));
}

// One line, and nothing else but what was there.
void expect_refused(const Ran& ran, int code, const std::string& part, const TemporaryFolder& folder,
                    std::size_t files) {
  EXPECT_EQ(ran.code, code) << ran.errors;
  EXPECT_THAT(ran.errors, StartsWith("weft: error: "));
  EXPECT_EQ(std::count(ran.errors.begin(), ran.errors.end(), '\n'), 1) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr(part));
  EXPECT_TRUE(ran.output.empty()) << ran.output;
  EXPECT_EQ(folder.entries(), files);
}

TEST(BadInputEndToEnd, ConfigurationsAreRefused) {
  const TemporaryFolder folder;
  folder.write("e.json", kCollective);
  const auto refused = [&](const std::string& set, const std::string& part) {
    SCOPED_TRACE(set);
    expect_refused(weft("run e.json -o out --set " + set, folder), 65, part, folder, 1);
  };
  refused("sytem=dgx-a100", "\"system\"");
  refused("network.link.bandwidth_GBps=-1", "/network/link/bandwidth_GBps: expected");
  refused("network.link.max_payload_bytes=64", "/network/link/max_payload_bytes: expected");
  refused("network.links_per_gpu=65536", "/network/links_per_gpu: expected");
  refused("switch_reduce=null", "in_switch");
  refused("gpus=9", "/gpus: expected");
  refused("collectives.shared_memory_bytes=300000", "/collectives: expected a block that fits on a compute unit");
  refused("collectives.ring.threads=1024", "/collectives: expected a block that fits on a compute unit");
  // With the warps that a tree's blocks have for synchronising.
  refused("collectives.ring.threads=672 --set all_reduce.algorithm=tree --set all_reduce.protocol=Simple",
          "collectives: tree by Simple: expected a block that fits on a compute unit of ");
  expect_refused(weft("run none.json -o out", folder), 66, "none.json", folder, 1);
}

TEST(BadInputEndToEnd, FilesThatAreNoTraceAreRefused) {
  const TemporaryFolder folder;
  folder.write("empty.json", "");
  folder.write("empty.json.gz", "");
  folder.write("other.json", R"({"what": ["is", "this"]})");
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}})");
  for (const char* file : {"empty.json", "empty.json.gz", "other.json"}) {
    SCOPED_TRACE(file);
    expect_refused(weft(std::string("import kineto ") + file + " -o out.json.gz", folder), 65, file, folder, 4);
    expect_refused(weft(std::string("run e.json -o out --set workload.trace=") + file, folder), 65, file, folder, 4);
    expect_refused(weft(std::string("trace info ") + file, folder), 65, file, folder, 4);
  }
  expect_refused(weft("import kineto none.json -o out.json.gz", folder), 66, "none.json", folder, 4);
}

TEST(RunEndToEnd, ReplaysATraceWithItsKernelAsLongAsAlone) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.path() / "t.json");
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}})");
  const Ran ran = weft("run e.json -o out --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "stdout");
  EXPECT_EQ(result.at("status"), "ok");
  EXPECT_EQ(result.at("collectives").at(0).at("bytes"), 65'536 * 4);
  std::istringstream rows(read_file(folder.path() / "out" / "kernels.csv"));
  int kernels = 0;
  for (std::string row; std::getline(rows, row);) {
    if (row.find("elementwise_kernel") == std::string::npos) continue;
    ++kernels;
    // gpu, stream, name, phase, start_s, end_s, isolated_s, slowdown, ...
    std::vector<std::string> cells;
    std::istringstream line(row);
    for (std::string cell; std::getline(line, cell, ',');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 8U) << row;
    EXPECT_NEAR(std::stod(cells[6]), 5e-6, 0.02 * 5e-6) << row;
  }
  EXPECT_EQ(kernels, 2);  // one on each GPU
}

TEST(RunEndToEnd, ReplaysWhatTheRecordedRankWaitedForOthers) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  trace.ranks[0].ops[1].duration = microseconds(400);
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}})");
  const auto communication = [&](const std::string& set) {
    const Ran ran = weft("run e.json --json " + set, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    const Json result = parse_json(ran.output, "stdout");
    const Json& c = result.at("collectives").at(0);
    return c.at("end_s").get<double>() - c.at("start_s").get<double>();
  };
  // Both GPUs' host time counts in a collective's, so the recorded 400 us are the least.
  EXPECT_NEAR(communication(""), 400e-6, 0.15 * 400e-6);
  EXPECT_LT(communication("--set workload.recorded_waits=false"), 100e-6);
}

// A collective beside a kernel that takes the memory moves for longer: that was no waiting for the other rank.
TEST(RunEndToEnd, TakesWhatKernelsCostACollectiveForNoWait) {
  const TemporaryFolder folder;
  Trace trace = small_trace();
  TraceOp& kernel = trace.ranks[0].ops[0];
  kernel.name = "gather_kernel";
  kernel.shape = LaunchShape{{80, 1, 1}, {512, 1, 1}, 16, 20'000};
  kernel.bytes = Bytes(250 << 20);
  kernel.duration = microseconds(700);
  TraceOp& collective = trace.ranks[0].ops[1];
  collective.start = microseconds(11);
  collective.duration = microseconds(400);
  collective.shape = LaunchShape{{2, 1, 1}, {544, 1, 1}, 96, 0};  // two channels
  collective.collective->elements = 1 << 18;
  collective.waits.clear();
  trace.ranks[0].iterations.front().end = microseconds(800);
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", R"({"system": "dgx1-v100-16gb", "gpus": 2, "workload": {"trace": "t.json"},
                             "all_reduce": {"algorithm": "ring", "channels": 2}})");
  const auto communication = [&](const std::string& set) {
    const Ran ran = weft("run e.json --json " + set, folder);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    const Json c = parse_json(ran.output, "stdout").at("collectives").at(0);
    return c.at("end_s").get<double>() - c.at("start_s").get<double>();
  };
  EXPECT_NEAR(communication(""), 400e-6, 0.1 * 400e-6);
  EXPECT_LT(communication("--set workload.recorded_waits=false"), 350e-6);
}

TEST(BadInputEndToEnd, TracesThatContradictThemselvesAreRefused) {
  const TemporaryFolder folder;
  write_trace(small_trace(), folder.path() / "t.json.gz");
  write_trace(small_trace(), folder.path() / "t.json");
  const std::string good = read_file(folder.path() / "t.json");
  const auto after = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << good;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  const std::string packed = read_file(folder.path() / "t.json.gz");
  folder.write("truncated.json.gz", packed.substr(0, packed.size() / 2));
  folder.write("cycle.json", after("\"waits\":[[1,0]]", "\"waits\":[[0,1],[1,0]]"));
  folder.write("group.json", after("[0,1],", "[0,5],"));
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}})");
  for (const char* file : {"truncated.json.gz", "cycle.json", "group.json"}) {
    SCOPED_TRACE(file);
    expect_refused(weft(std::string("run e.json -o out --set workload.trace=") + file, folder), 65, file, folder, 6);
    expect_refused(weft(std::string("trace info ") + file, folder), 65, file, folder, 6);
  }
}

TEST(KernelEndToEnd, PrintsTheWarpProgramsOfAModel) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "hgx-h100", "gpus": 2, "workload": {"model": "resnet50", "batch": 4}})");
  const Ran ran = weft("kernel e.json forward_256x64 --json", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json info = parse_json(ran.output, "kernels");
  ASSERT_FALSE(info.at("kernels").empty());
  for (const Json& kernel : info.at("kernels")) {
    EXPECT_THAT(kernel.at("name").get<std::string>(), HasSubstr("forward_256x64"));
    EXPECT_GE(kernel.at("blocks_per_unit").get<int>(), 1);
    ASSERT_EQ(kernel.at("phases").size(), 2U);  // the product, and what it stores
    EXPECT_EQ(kernel.at("phases").at(0).at("busiest"), "tensor");
    EXPECT_TRUE(kernel.at("phases").at(0).at("barrier").get<bool>());
    EXPECT_TRUE(kernel.at("phases").at(0).at("stores").empty());
    EXPECT_TRUE(kernel.at("phases").at(1).at("cycles_per_round").empty());
  }
  const Ran text = weft("kernel e.json forward_256x64", folder);
  EXPECT_THAT(text.output, HasSubstr("barriers between them"));
  EXPECT_THAT(text.output, HasSubstr("on a unit ("));
  const Ran unknown = weft("kernel e.json no_such_kernel", folder);
  EXPECT_EQ(unknown.code, 65);
  EXPECT_THAT(unknown.errors, HasSubstr("no_such_kernel"));
}

}  // namespace
}  // namespace weft
