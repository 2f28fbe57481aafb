// The injected library in a program that is not ours, without a driver or GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using capture::CollectiveRecord;
using capture::RecordKind;
using testing::TemporaryFolder;

struct Ran {
  int status;
  std::string output;
};

struct Recorded {
  std::vector<CollectiveRecord> collectives;
  std::vector<capture::CommunicatorRecord> communicators;
  std::vector<std::string> notes;
  std::size_t files = 0;
  bool whole = true;
};

class Injection : public ::testing::Test {
 protected:
  // With the library in each of the places from which it is loaded.
  Ran run(const std::string& mode, const std::string& variables = "") {
    const std::string output = folder_.file("output").string();
    const std::string library = WEFT_CAPTURE_LIBRARY;
    const std::string command = "WEFT_CAPTURE_DIRECTORY=" + folder_.file("").string() +
                                " CUDA_INJECTION64_PATH=" + library + " NCCL_PROFILER_PLUGIN=" + library +
                                " LD_PRELOAD=" + library + " " + variables + " " + HOST_PROGRAM + " " + mode + " >" +
                                output + " 2>&1";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), testing::content_of(output)};
  }

  Recorded recorded() {
    Recorded out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file(""))) {
      if (entry.path().extension() != capture::kFileSuffix) continue;
      ++out.files;
      CaptureFile file(entry.path());
      while (file.next()) {
        if (file.kind() == RecordKind::collective) out.collectives.push_back(file.as<CollectiveRecord>());
        if (file.kind() == RecordKind::communicator)
          out.communicators.push_back(file.as<capture::CommunicatorRecord>());
        if (file.kind() == RecordKind::note) out.notes.push_back(file.note());
      }
      out.whole = out.whole && file.damage().empty();
    }
    return out;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Injection, LeavesAProgramWithoutCudaAsItIs) {
  const Ran plain = run("", "");
  EXPECT_EQ(plain.status, 3);
  EXPECT_EQ(plain.output, "hello\n");
  EXPECT_EQ(recorded().files, 0u);
}

TEST_F(Injection, WithoutADriverTheProgramRunsAndIsTold) {
  if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "there is a driver here";
  const Ran started = run("cuda");
  EXPECT_EQ(started.status, 3) << started.output;
  EXPECT_THAT(started.output, ::testing::HasSubstr("CUDA started"));
#ifdef WEFT_CUPTI_LIBRARY
  EXPECT_THAT(started.output, ::testing::HasSubstr("weft capture: "));
  EXPECT_THAT(started.output, ::testing::HasSubstr("The program runs on"));
  const Recorded records = recorded();
  ASSERT_EQ(records.notes.size(), 1u);
  EXPECT_THAT(records.notes[0], ::testing::HasSubstr("not captured"));
  EXPECT_TRUE(records.whole);
#endif
}

TEST_F(Injection, WithoutADriverNothingIsCountedAndTheProgramRuns) {
  if (std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "there is a driver here";
  const Ran started = run("cuda", "WEFT_CAPTURE_COUNTERS=1");
  EXPECT_EQ(started.status, 3) << started.output;
  EXPECT_THAT(started.output, ::testing::HasSubstr("CUDA started"));
#ifdef WEFT_CUPTI_LIBRARY
  EXPECT_THAT(recorded().notes, ::testing::ElementsAre(::testing::HasSubstr("its kernels are not counted")));
  EXPECT_TRUE(recorded().whole);
#endif
}

TEST_F(Injection, WithoutAFolderNothingIsWritten) {
  const Ran ran = run("nccl", "WEFT_CAPTURE_DIRECTORY=");
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.output, "hello\n");
}

TEST_F(Injection, AFolderThatIsGoneIsToldOnceAndHarmsNothing) {
  const Ran ran = run("nccl", "WEFT_CAPTURE_DIRECTORY=/nowhere");
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.output, ::testing::HasSubstr("cannot write /nowhere/"));
}

TEST_F(Injection, ThePluginTellsWhatNcclChose) {
  for (const char* mode : {"profile-v4", "profile-v5", "profile-v6"}) {
    SCOPED_TRACE(mode);
    const std::size_t before = recorded().collectives.size();
    const Ran ran = run(mode);
    ASSERT_EQ(ran.status, 3) << ran.output;
    const Recorded records = recorded();
    ASSERT_GT(records.collectives.size(), before);
    const CollectiveRecord& c = records.collectives.back();
    const bool sends = std::string(c.function) == "Send";
    const CollectiveRecord& all_reduce = sends ? records.collectives[records.collectives.size() - 2] : c;
    EXPECT_STREQ(all_reduce.function, "AllReduce");
    EXPECT_STREQ(all_reduce.algorithm, "NVLS");
    EXPECT_STREQ(all_reduce.protocol, "SIMPLE");
    EXPECT_EQ(all_reduce.count, 1000u);
    EXPECT_EQ(all_reduce.sequence, 7u);
    EXPECT_EQ(all_reduce.channels, 12);
    EXPECT_EQ(all_reduce.type, 9);  // ncclBfloat16
    EXPECT_EQ(all_reduce.communicator, 0xabcdu);
    EXPECT_EQ(all_reduce.source, capture::CollectiveSource::profiler_plugin);
    if (sends) {
      EXPECT_EQ(c.count, 50u);
      EXPECT_EQ(c.peer, 0);
    }
    EXPECT_EQ(records.communicators.back().ranks, 2u);
    EXPECT_EQ(records.communicators.back().rank, 1u);
    EXPECT_TRUE(records.whole);
  }
}

TEST_F(Injection, CallsOfNcclAreRecordedAndPassedOn) {
  const Ran ran = run("nccl");
  ASSERT_EQ(ran.status, 3) << ran.output;
  const Recorded records = recorded();
  ASSERT_EQ(records.collectives.size(), 3u);  // ncclBcast once, though it calls ncclBroadcast
  EXPECT_STREQ(records.collectives[0].function, "AllReduce");
  EXPECT_EQ(records.collectives[0].count, 8u);
  EXPECT_EQ(records.collectives[0].type, 7);
  EXPECT_EQ(records.collectives[0].source, capture::CollectiveSource::interposed_call);
  EXPECT_STREQ(records.collectives[1].function, "Broadcast");
  EXPECT_STREQ(records.collectives[2].function, "Send");
  EXPECT_EQ(records.collectives[2].peer, 3);
  ASSERT_EQ(records.communicators.size(), 2u);
  EXPECT_EQ(records.communicators[0].ranks, 4u);
  EXPECT_EQ(records.communicators[0].rank, 2u);
  EXPECT_EQ(records.communicators[1].ranks, 2u);
  EXPECT_EQ(records.collectives[0].communicator, records.communicators[0].id);
  EXPECT_EQ(records.collectives[1].communicator, records.communicators[1].id);
  EXPECT_NE(records.communicators[0].id, records.communicators[1].id);
}

// What makes groups of ranks findable: the same numbers in every process.
TEST_F(Injection, CommunicatorsHaveTheSameNumberInAllProcesses) {
  ASSERT_EQ(run("nccl").status, 3);
  ASSERT_EQ(run("nccl").status, 3);
  const Recorded records = recorded();
  ASSERT_EQ(records.communicators.size(), 4u);
  EXPECT_EQ(records.communicators[0].id, records.communicators[2].id);
  EXPECT_EQ(records.communicators[1].id, records.communicators[3].id);
}

TEST_F(Injection, AForkIsNotRecordedAndDoesNotHang) {
  const Ran ran = run("fork");
  EXPECT_EQ(ran.status, 3) << ran.output;
  const Recorded records = recorded();
  EXPECT_EQ(records.files, 1u);
  EXPECT_EQ(records.collectives.size(), 3u);
  EXPECT_TRUE(records.whole);
}

TEST_F(Injection, ThreadsMayCallAtOnce) {
  EXPECT_EQ(run("threads").status, 3);
  EXPECT_EQ(recorded().collectives.size(), 200u);
}

TEST_F(Injection, AKilledProgramLeavesWhatItDid) {
  EXPECT_EQ(run("killed").status, 128 + 9);
  const Recorded records = recorded();
  EXPECT_EQ(records.collectives.size(), 3u);
  EXPECT_FALSE(records.whole);
}

}  // namespace
}  // namespace weft
