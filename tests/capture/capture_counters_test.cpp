// `weft capture --counters` from the command line to the demands of a replay, on the tests' own CUPTI and driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "traces/replay_graph.h"
#include "traces/trace_file.h"

#ifdef FAKE_CUPTI
#include "tests/capture/capture_with_counters.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using CaptureCounters = testing::CaptureWithCounters;
using testing::Ran;

TEST_F(CaptureCounters, ComeFromTheRangeProfilerToTheTrace) {
  const Ran ran = run("1000");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_EQ(ran.output, "hello\nCUDA started\nhello\nCUDA started\n");
  EXPECT_THAT(ran.errors, HasSubstr("1000 of 1000 kernels have counters"));
  EXPECT_THAT(ran.errors, HasSubstr("no counters for: fp64_ops fp16_ops"));
  EXPECT_FALSE(records_are_left());
  const Trace trace = read_trace(trace_);
  ASSERT_EQ(trace.ranks.size(), 1u);
  ASSERT_EQ(trace.ranks[0].ops.size(), 1000u);
  EXPECT_EQ(trace.ranks[0].ops[1].duration.count(), 8'000'000'000);  // of the first pass
  for (std::size_t i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    ASSERT_NE(trace.ranks[0].ops[i].counters, nullptr);
    const KernelCounters& counters = *trace.ranks[0].ops[i].counters;
    EXPECT_EQ(counters[KernelCounter::hbm_read_bytes], 1'000'000 + static_cast<std::int64_t>(i));
    EXPECT_EQ(counters[KernelCounter::l2_read_bytes], i % 2 == 1 ? 3'200'000 : 6'400'000);
    EXPECT_EQ(counters[KernelCounter::tensor_fp16_ops], i % 2 == 1 ? 4'000'000 : 0);
    EXPECT_EQ(counters[KernelCounter::fp32_ops], i % 2 == 1 ? 205 : 6'000'005);
    EXPECT_EQ(counters[KernelCounter::fp64_ops], std::nullopt);
  }
}

TEST_F(CaptureCounters, ReachTheDemandsOfAReplay) {
  ASSERT_EQ(run("10").status, 0);
  const Graph graph = graph_from_trace(read_trace(trace_), 0);
  ASSERT_EQ(graph.nodes.size(), 10u);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& kernel = graph.nodes[i].kernel;
    EXPECT_EQ(kernel.origin, DemandOrigin::counters);
    std::uint64_t read = 0, written = 0;
    for (const TensorUse& use : kernel.reads) read += use.bytes_per_block * kernel.shape.blocks();
    for (const TensorUse& use : kernel.writes) written += use.bytes_per_block * kernel.shape.blocks();
    EXPECT_NEAR(static_cast<double>(read), i % 2 == 1 ? 3.2e6 : 6.4e6, 2);
    EXPECT_NEAR(static_cast<double>(written), 3.2e5, 2);
    EXPECT_EQ(kernel.flops[static_cast<std::size_t>(Pipe::tensor_fp16)], i % 2 == 1 ? 4e6 : 0);
    EXPECT_EQ(kernel.flops[static_cast<std::size_t>(Pipe::fp32)], i % 2 == 1 ? 205 : 6'000'005);
  }
}

TEST_F(CaptureCounters, MakeMeasuredDemandsOfACalibration) {
  ASSERT_EQ(run("10").status, 0);
  const std::string command = WEFT_BINARY " calibrate " + trace_.string() + " --system dgx-a100 --json -o " +
                              folder_.file("d.json").string() + " >" + folder_.file("out").string() + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << testing::content_of(folder_.file("out"));
  EXPECT_THAT(testing::content_of(folder_.file("out")), HasSubstr("\"measured\": 10,"));
}

// Of two threads' kernels none is measured in the place of another, or in that of a collective.
TEST_F(CaptureCounters, LaunchesOfSeveralThreadsAreToldApart) {
  const Ran ran = run("-300 twice");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("400 of 600 kernels have counters"));
  const Trace trace = read_trace(trace_);
  for (const TraceOp& op : trace.ranks[0].ops) {
    if (op.kind == TraceOpKind::collective) continue;
    const bool product = op.name.find("gemm") != std::string::npos;
    EXPECT_EQ((*op.counters)[KernelCounter::l2_read_bytes], product ? 3'200'000 : 6'400'000);
  }
}

// The fake ends the program when one is replayed, or a graph's.
TEST_F(CaptureCounters, LeaveCollectivesAndGraphsOut) {
  const Ran ran = run("-30");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.output, Not(HasSubstr("replayed")));
  EXPECT_THAT(ran.errors, HasSubstr("20 of 30 kernels have counters"));
  const Trace trace = read_trace(trace_);
  for (const TraceOp& op : trace.ranks[0].ops)
    EXPECT_EQ(op.counters == nullptr, op.kind == TraceOpKind::collective) << op.name;
}

TEST_F(CaptureCounters, DifferencesBetweenThePassesAreTold) {
  const Ran ran = run("10", "FAKE_CUPTI=one-more");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("5 kernels were launched more often in the second pass"));
  EXPECT_THAT(ran.errors, HasSubstr("6 times in place of 5"));
  EXPECT_THAT(ran.errors, HasSubstr("5 of 10 kernels have counters"));
}

TEST_F(CaptureCounters, KernelsThatCannotBeMeasuredAreTold) {
  // A start for each pair between two collectives, and another where that failed.
  const Ran ran = run("-30", "FAKE_CUPTI=flaky");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("9 kernels could not be measured"));
}

// Which counters are whose is not known of those that were measured together; afterwards each is measured by itself.
TEST_F(CaptureCounters, BesideTheDriversOwnKernelsAreOfOneKernelAtATime) {
  const Ran ran = run("1000", "FAKE_CUPTI=own-kernels");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("872 of 1000 kernels have counters"));
  const Trace trace = read_trace(trace_);
  EXPECT_EQ(trace.ranks[0].ops[127].counters, nullptr);
  for (std::size_t i = 128; i < 1000; ++i)
    EXPECT_EQ((*trace.ranks[0].ops[i].counters)[KernelCounter::l2_read_bytes], i % 2 == 1 ? 3'200'000 : 6'400'000);
}

TEST_F(CaptureCounters, WithoutRightsTheTimesAreThere) {
  const Ran ran = run("10", "FAKE_CUPTI=no-counters");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, "hello\nCUDA started\nhello\nCUDA started\n");
  EXPECT_THAT(ran.errors, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_THAT(ran.errors, HasSubstr("ERR_NVGPUCTRPERM"));
  EXPECT_THAT(ran.errors, HasSubstr("its kernels are not counted"));
  EXPECT_THAT(ran.errors, HasSubstr("0 of 10 kernels have counters"));
  EXPECT_EQ(read_trace(trace_).ranks[0].ops.size(), 10u);
}

TEST_F(CaptureCounters, OfAChipThatHasFewAreThoseThatThereAre) {
  const Ran ran = run("2", "FAKE_CUPTI=old-chip");
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.errors, HasSubstr("no counters for: l2_read_bytes l2_written_bytes fp64_ops fp16_ops"));
  const Graph graph = graph_from_trace(read_trace(trace_), 0);
  EXPECT_EQ(graph.nodes[0].kernel.origin, DemandOrigin::counters);  // by HBM's bytes
}

TEST_F(CaptureCounters, RecordsThatAreKeptGiveTheSameTrace) {
  ASSERT_EQ(run("10", "", "--keep").status, 0);
  const std::string before = testing::content_of(trace_);
  const std::string command =
      WEFT_BINARY " import capture " + trace_.string() + ".capture -o " + trace_.string() + " >/dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(testing::content_of(trace_), before);
}

TEST_F(CaptureCounters, AFirstRunThatFailsHasNoSecond) {
  const std::string command = WEFT_BINARY " capture --counters -o " + trace_.string() +
                              " -- sh -c 'echo once; exit 5' >" + folder_.file("out").string() + " 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_EQ(testing::content_of(folder_.file("out")), "once\n");
}

}  // namespace
}  // namespace weft
#endif
