// `weft capture` around programs, from the command line to the trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/capture/capture_records.h"
#include "tests/traces/temporary_file.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

struct Ran {
  int status;
  std::string output, errors;
};

class CaptureCommand : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef FAKE_CUPTI
    GTEST_SKIP() << "built without CUPTI";
#endif
  }

  // From `variables weft capture -o trace.json options -- program`.
  Ran run(const std::string& program, const std::string& variables = "", const std::string& options = "") {
    const std::string command = variables + " " WEFT_BINARY " capture -o " + trace_.string() + " " + options + " -- " +
                                program + " >" + folder_.file("out").string() + " 2>" + folder_.file("err").string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), testing::content_of(folder_.file("out")),
            testing::content_of(folder_.file("err"))};
  }
#ifdef FAKE_CUPTI
  Ran run_kernels(const std::string& count, const std::string& variables = "") {
    return run(HOST_PROGRAM " kernels " FAKE_DRIVER " " + count, "WEFT_CAPTURE_CUPTI=" FAKE_CUPTI " " + variables);
  }
#endif
  // A program that leaves records as if it had used a GPU.
  std::string recorded_program(std::int32_t rank, std::int32_t world, const std::string& then) {
    const auto file = folder_.file("rank" + std::to_string(rank) + ".records");
    capture::TestProcess process(file);
    process.session(rank, world);
    process.launch("gemm", 0, 10, 20, 7, 1);
    process.end();
    return "sh -c 'cp " + file.string() + " \"$WEFT_CAPTURE_DIRECTORY\"/r" + std::to_string(rank) + ".weftcap; " +
           then + "'";
  }
  [[nodiscard]] bool records_are_left() const { return std::filesystem::exists(trace_.string() + ".capture"); }

  TemporaryFolder folder_;
  std::filesystem::path trace_ = folder_.file("trace.json");
};

TEST_F(CaptureCommand, PassesOnTheProgramsStatusAndOutput) {
  const Ran ran = run(recorded_program(0, 1, "echo out; echo err >&2; exit 7"));
  EXPECT_EQ(ran.status, 7);
  EXPECT_EQ(ran.output, "out\n");
  EXPECT_THAT(ran.errors, HasSubstr("err\n"));
  EXPECT_EQ(read_trace(trace_).ranks[0].ops[0].name, "gemm");
  EXPECT_FALSE(records_are_left());
}

TEST_F(CaptureCommand, ASignalsEndIsToldAsShellsDo) {
  EXPECT_EQ(run(recorded_program(0, 1, "kill -9 $$")).status, 128 + 9);
  EXPECT_EQ(read_trace(trace_).ranks.size(), 1u);
}

TEST_F(CaptureCommand, AProgramWithoutGpuRunsAndIsNamed) {
  const Ran ran = run("echo hello");
  EXPECT_EQ(ran.status, 66);
  EXPECT_EQ(ran.output, "hello\n");
  EXPECT_THAT(ran.errors, HasSubstr("no process started CUDA"));
  EXPECT_FALSE(records_are_left());
}

TEST_F(CaptureCommand, AMissingProgramIsMissingInput) {
  const Ran ran = run("/nowhere/program");
  EXPECT_EQ(ran.status, 66);
  EXPECT_THAT(ran.errors, HasSubstr("/nowhere/program"));
  EXPECT_FALSE(records_are_left());
}

TEST_F(CaptureCommand, BesideAnotherProfilerTheProgramRunsWithout) {
  const Ran ran = run("sh -c 'echo $CUDA_INJECTION64_PATH; exit 4'", "CUDA_INJECTION64_PATH=/opt/nsys.so");
  EXPECT_EQ(ran.status, 4);
  EXPECT_EQ(ran.output, "/opt/nsys.so\n");
  EXPECT_THAT(ran.errors, HasSubstr("another profiler is injected already"));
}

TEST_F(CaptureCommand, KeepsWhatTheUserPreloads) {
  const Ran ran =
      run("sh -c 'echo $LD_PRELOAD; echo $NCCL_PROFILER_PLUGIN'", "LD_PRELOAD=/none.so NCCL_PROFILER_PLUGIN=mine");
  EXPECT_THAT(ran.output, HasSubstr("libweft_capture.so:/none.so\nmine\n"));
  EXPECT_THAT(ran.errors, HasSubstr("NCCL_PROFILER_PLUGIN is mine"));
}

// As srun starts them: a `weft capture` a rank, of which the last joins.
TEST_F(CaptureCommand, OfSeveralRanksTheLastJoinsAll) {
  const std::string job = "SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=";
  EXPECT_EQ(run(recorded_program(1, 2, "exit 0"), job + "1").status, 0);
  EXPECT_FALSE(std::filesystem::exists(trace_));
  EXPECT_EQ(run(recorded_program(0, 2, "exit 0"), job + "0").status, 0);
  const Trace trace = read_trace(trace_);
  EXPECT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.world_size, 2u);
  EXPECT_FALSE(std::filesystem::exists(trace_.string() + ".capture-12-3"));
}

TEST_F(CaptureCommand, RecordsThatMakeNoTraceAreKeptForImport) {
  const Ran ran = run("sh -c 'echo no >\"$WEFT_CAPTURE_DIRECTORY\"/a.weftcap'");
  EXPECT_EQ(ran.status, 65);
  EXPECT_THAT(ran.errors, HasSubstr("the records stay in"));
  EXPECT_TRUE(records_are_left());
}

#ifdef FAKE_CUPTI
TEST_F(CaptureCommand, KernelsComeFromCuptiToTheTrace) {
  const Ran ran = run_kernels("20000");
  ASSERT_EQ(ran.status, 0) << ran.errors;
  EXPECT_EQ(ran.output, "hello\nCUDA started\n");
  const Trace trace = read_trace(trace_);
  ASSERT_EQ(trace.ranks.size(), 1u);
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 20'000u);
  EXPECT_THAT(ops[1].name, HasSubstr("sm90_xmma_gemm"));
  EXPECT_EQ(ops[19'999].duration.count(), 8'000'000'000);
  EXPECT_EQ((ops[1].start - ops[1].issued).count(), 3'000'000'000);
  EXPECT_EQ(ops[1].issue_duration.count(), 2'000'000'000);
}

TEST_F(CaptureCommand, StreamsWaitForWhatTheirEventsRecorded) {
  const Ran ran = run(HOST_PROGRAM " streams " FAKE_DRIVER, "WEFT_CAPTURE_CUPTI=" FAKE_CUPTI);
  ASSERT_EQ(ran.status, 0) << ran.errors;
  const std::vector<TraceOp> ops = read_trace(trace_).ranks[0].ops;
  ASSERT_EQ(ops.size(), 7u);
  std::vector<std::vector<std::uint32_t>> waits;
  for (const TraceOp& op : ops) waits.push_back(op.waits);
  const std::vector<std::uint32_t> none, first{0}, third{2};
  EXPECT_THAT(waits, ::testing::ElementsAre(none, none, first, none, first, third, none));
}

TEST_F(CaptureCommand, AnotherProfilerInTheProcessIsNamed) {
  const Ran ran = run_kernels("0", "FAKE_CUPTI=busy");
  EXPECT_EQ(ran.status, 65);  // the program's is 0, but there is no trace
  EXPECT_EQ(ran.output, "hello\nCUDA started\n");
  EXPECT_THAT(ran.errors, HasSubstr("another profiler: Nsight Systems has CUPTI"));
}

TEST_F(CaptureCommand, MissingRightsAreExplained) {
  const Ran ran = run_kernels("0", "FAKE_CUPTI=forbidden");
  EXPECT_EQ(ran.output, "hello\nCUDA started\n");
  EXPECT_THAT(ran.errors, HasSubstr("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"));
  EXPECT_THAT(ran.errors, HasSubstr("RmProfilingAdminOnly"));
}

TEST_F(CaptureCommand, AnOldDriverIsNamed) {
  const Ran ran = run_kernels("0", "FAKE_CUPTI=forbidden FAKE_DRIVER_VERSION=12040");
  EXPECT_THAT(ran.errors, HasSubstr("the driver is older than CUDA 13"));
}
#endif

}  // namespace
}  // namespace weft
