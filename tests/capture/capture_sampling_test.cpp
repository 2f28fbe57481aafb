// What GPUs move over time, in the first run of `weft capture --counters`, on the tests' own CUPTI and driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "traces/trace_file.h"

#ifdef FAKE_CUPTI
#include "tests/capture/capture_with_counters.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;

class CaptureSampling : public testing::CaptureWithCounters {
 protected:
  [[nodiscard]] TraceTraffic traffic() const { return read_trace(trace_).ranks.at(0).traffic; }
  // Neither the times nor the counters suffer.
  void expect_the_rest(const Ran& ran) const {
    EXPECT_EQ(ran.status, 0) << ran.errors;
    EXPECT_EQ(ran.output, "hello\nCUDA started\nhello\nCUDA started\n");
    const Trace trace = read_trace(trace_);
    EXPECT_EQ(trace.ranks[0].ops.size(), 1000u);
    EXPECT_EQ(trace.ranks[0].ops[1].duration.count(), 8'000'000'000);
  }
  static std::size_t often(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
};

constexpr std::int64_t kHalfMillisecond = 500'000'000'000;  // fs

// The fake's kernels take 10 ms, its samples are of half a millisecond; of the first CUPTI does not say when it began.
TEST_F(CaptureSampling, ComesFromPmSamplingToTheTrace) {
  const Ran ran = run("1000");
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr("1000 of 1000 kernels have counters"));
  const TraceTraffic found = traffic();
  ASSERT_EQ(found.size(), 19u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i) + 1;
    EXPECT_EQ(found.start[i].count(), number * kHalfMillisecond);
    EXPECT_EQ(found.duration[i].count(), kHalfMillisecond);
    EXPECT_EQ(found[TrafficCounter::hbm_read_bytes][i], 1'000'000 + number);
    EXPECT_EQ(found[TrafficCounter::hbm_written_bytes][i], 500'000);
    EXPECT_EQ(found[TrafficCounter::nvlink_received_bytes][i], 200'000);
    EXPECT_EQ(found[TrafficCounter::nvlink_sent_bytes][i], 100'000 + 10 * number);
  }
  EXPECT_THAT(ran.errors, HasSubstr("HBM 3.0 GB/s (highest 3.0), NVLink in 0.4 GB/s (highest 0.4)"));
}

TEST_F(CaptureSampling, RecordsThatAreKeptHaveAllSamples) {
  ASSERT_EQ(run("1000", "", "--keep").status, 0);
  std::size_t samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(trace_.string() + ".capture")) {
    if (entry.path().extension() != capture::kFileSuffix) continue;
    CaptureFile file(entry.path());
    while (file.next())
      if (file.kind() == capture::RecordKind::traffic) {
        ++samples;
        EXPECT_EQ(file.as<capture::TrafficRecord>().known, 0xfu);
      }
    EXPECT_EQ(file.damage(), "");
  }
  EXPECT_EQ(samples, 29u);  // 30 less the first; those behind the stop have no length
}

TEST_F(CaptureSampling, IsNotDoneUnlessCountersAreAskedFor) {
  const std::string command = "WEFT_CAPTURE_CUPTI=" FAKE_CUPTI " " WEFT_BINARY " capture -o " + trace_.string() +
                              " -- " HOST_PROGRAM " kernels " FAKE_DRIVER " 1000 >/dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(traffic().size(), 0u);
}

TEST_F(CaptureSampling, MayBeLeftOut) {
  const Ran ran = run("1000", "", "--no-sampling");
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr("1000 of 1000 kernels have counters"));
  EXPECT_EQ(traffic().size(), 0u);
}

TEST_F(CaptureSampling, OfAChipThatCountsCyclesIsByCycles) {
  expect_the_rest(run("1000", "FAKE_CUPTI=cycles"));
  EXPECT_EQ(traffic().size(), 19u);
}

TEST_F(CaptureSampling, OfAChipThatHasNoNvlinkIsOfHbm) {
  const Ran ran = run("1000", "FAKE_CUPTI=old-chip");
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr("no counters for: nvlink_received_bytes nvlink_sent_bytes\n"));
  const TraceTraffic found = traffic();
  EXPECT_EQ(found[TrafficCounter::hbm_written_bytes].size(), 19u);
  EXPECT_TRUE(found[TrafficCounter::nvlink_sent_bytes].empty());
}

// As on an H200 in a virtual machine.
TEST_F(CaptureSampling, IsOfWhatCanBeSampled) {
  const Ran ran = run("1000", "FAKE_CUPTI=few-samples");
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr("no counters for: nvlink_received_bytes nvlink_sent_bytes\n"));
  const TraceTraffic found = traffic();
  EXPECT_EQ(found[TrafficCounter::hbm_read_bytes].size(), 19u);
  EXPECT_TRUE(found[TrafficCounter::nvlink_received_bytes].empty());
}

struct Failure {
  const char *mode, *said;
};
void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.mode; }

class CaptureSamplingFailure : public CaptureSampling, public ::testing::WithParamInterface<Failure> {};

TEST_P(CaptureSamplingFailure, IsToldOnceAndHarmsNothing) {
  const Ran ran = run("1000", std::string("FAKE_CUPTI=") + GetParam().mode);
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr(GetParam().said));
  EXPECT_THAT(ran.errors, HasSubstr("The program runs on, what its GPUs move over time is not sampled"));
  EXPECT_EQ(often(ran.errors, "weft capture: CUPTI does not sample device 0"), 1u) << ran.errors;
  EXPECT_EQ(traffic().size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(, CaptureSamplingFailure,
                         ::testing::Values(Failure{"no-sampling", "cuptiProfilerDeviceSupported"},
                                           Failure{"no-counters", "NVreg_RestrictProfilingToAdminUsers=0"},
                                           Failure{"sampling-busy", "another profiler uses the counters of this GPU"},
                                           Failure{"undecodable", "cuptiPmSamplingDecodeData"}));

TEST_F(CaptureSampling, ACuptiThatIsTooOldIsTold) {
  const Ran ran = run("1000", "", "", FAKE_OLD_CUPTI);
  expect_the_rest(ran);
  EXPECT_THAT(ran.errors, HasSubstr("this CUPTI has no PM sampling"));
  EXPECT_THAT(ran.errors, HasSubstr("1000 of 1000 kernels have counters"));
  EXPECT_EQ(traffic().size(), 0u);
}

TEST_F(CaptureSampling, GoesOnWhenABufferWasFullAndSaysSo) {
  for (const char* mode : {"overflow", "image-full"}) {
    const Ran ran = run("1000", std::string("FAKE_CUPTI=") + mode);
    expect_the_rest(ran);
    EXPECT_THAT(ran.errors, HasSubstr("buffers of PM sampling were full 1 times on device 0"));
    EXPECT_EQ(traffic().size(), 19u);
  }
}

// As was seen with CUDA 12.8: one of the two only.
TEST_F(CaptureSampling, ThatKeepsKernelsFromBeingRecordedIsTold) {
  const Ran ran = run("1000", "FAKE_CUPTI=silent");
  EXPECT_EQ(ran.status, 65);
  EXPECT_THAT(ran.errors, HasSubstr("no operation recorded"));
  EXPECT_THAT(ran.errors, HasSubstr("capture with --no-sampling"));
}

}  // namespace
}  // namespace weft
#endif
