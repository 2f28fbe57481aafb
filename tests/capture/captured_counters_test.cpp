#include "traces/capture/captured_counters.h"

#include <gmock/gmock.h>

#include "tests/capture/capture_records.h"
#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_import.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

class CapturedCounters : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_.file("counters")); }

  // The first pass: kernels one after the other.
  void times(const std::vector<const char*>& kernels, std::int32_t rank = -1, std::int32_t world = -1) {
    capture::TestProcess process(folder_.file("times" + std::to_string(rank) + ".weftcap"));
    process.session(rank, world);
    std::uint32_t i = 0;
    for (const char* kernel : kernels) {
      ++i;
      process.launch(kernel, 10.0 * i, 10.0 * i + 3, 10.0 * i + 8, 7, i);
    }
    process.end();
  }
  struct Counted {
    const char* kernel;
    std::uint64_t read;  // 0: not measured
    std::uint32_t device = 0;
  };
  void counters(const std::vector<Counted>& kernels, std::int32_t rank = -1, std::uint32_t nccl_rank = 0,
                const char* file = "a") {
    capture::TestProcess process(folder_.file("counters") / (std::string(file) + ".weftcap"));
    process.session(rank, rank + 1);
    if (nccl_rank > 0) process.communicator(7, 4, nccl_rank);
    for (const Counted& kernel : kernels) process.counters(kernel.kernel, kernel.read, kernel.device);
    process.end();
  }
  Trace joined() {
    notes_.clear();
    return import_capture({folder_.file("")}, notes_);
  }
  static std::vector<std::int64_t> reads(const TraceRank& rank) {
    std::vector<std::int64_t> out;
    for (const TraceOp& op : rank.ops)
      out.push_back(op.counters ? (*op.counters)[KernelCounter::hbm_read_bytes].value_or(-1) : -2);
    return out;
  }

  TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(CapturedCounters, AreThoseOfTheSameLaunch) {
  times({"a", "b", "a"});
  counters({{"b", 20}, {"a", 10}, {"a", 11}});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(10, 20, 11));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(CapturedCounters, OfKernelsThatRanMoreOftenOnceAreNotJoined) {
  times({"a", "b", "a"});
  counters({{"a", 10}, {"b", 20}, {"a", 11}, {"a", 12}, {"c", 1}});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(-2, 20, -2));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("2 kernels were launched more often in the second pass and have no "
                                            "counters, the first of them (a) 3 times in place of 2"),
                                  HasSubstr("1 kernels ran in the second pass only")));
}

TEST_F(CapturedCounters, OfASecondPassThatWasCutShortAreThoseOfTheFirstLaunches) {
  times({"a", "b", "a"});
  counters({{"a", 10}});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(10, -2, -2));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("2 kernels were not launched in the second pass")));
}

// Three iterations of a, b, a; the second pass ended in the second.
TEST_F(CapturedCounters, AreLentToTheSameLaunchOfOtherIterations) {
  {
    capture::TestProcess process(folder_.file("times.weftcap"));
    process.session();
    for (std::uint32_t i = 0; i < 3; ++i) {
      const double t = 100.0 * i;
      process.range(10 * i + 1, "forward", t, t + 40);
      process.launch("a", t + 1, t + 3, t + 8, 7, 10 * i + 1);
      process.launch("b", t + 11, t + 13, t + 18, 7, 10 * i + 2);
      process.launch("a", t + 21, t + 23, t + 28, 7, 10 * i + 3);
      process.range(10 * i + 2, "optimizer", t + 50, t + 60);
    }
    process.end();
  }
  counters({{"a", 10}, {"b", 20}, {"a", 11}, {"a", 12}, {"b", 21}});
  const Trace trace = joined();
  ASSERT_EQ(trace.ranks[0].iterations.size(), 3u);
  EXPECT_THAT(reads(trace.ranks[0]), ElementsAre(10, 20, 11, 12, 21, 11, 12, 21, 11));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("4 kernels were not launched in the second pass"),
                                  HasSubstr("4 kernels have the counters of their like in another iteration")));
}

TEST_F(CapturedCounters, ThatCouldNotBeMeasuredKeepTheirPlace) {
  times({"a", "a"});
  counters({{"a", 0}, {"a", 11}});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(-2, 11));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("1 kernels could not be measured")));
}

TEST_F(CapturedCounters, BelongToTheRankOfTheLauncherOrOfNccl) {
  times({"a"}, 0, 2);
  times({"a"}, 1, 2);
  counters({{"a", 11}}, 1, 0, "first");
  counters({{"a", 10}}, 0, 0, "second");
  Trace trace = joined();
  EXPECT_THAT(reads(trace.ranks[0]), ElementsAre(10));
  EXPECT_THAT(reads(trace.ranks[1]), ElementsAre(11));

  std::filesystem::remove(folder_.file("counters") / "second.weftcap");
  counters({{"a", 12}}, -1, 1, "first");
  trace = joined();
  EXPECT_THAT(reads(trace.ranks[0]), ElementsAre(-2));
  EXPECT_THAT(reads(trace.ranks[1]), ElementsAre(12));
  EXPECT_THAT(notes_, ::testing::Contains(HasSubstr("rank 0 has no counters")));
}

TEST_F(CapturedCounters, OfGpusThatNothingNamesAreToldAndLeftOut) {
  times({"a"}, 0, 2);
  times({"a"}, 1, 2);
  counters({{"a", 11, 0}, {"a", 12, 1}, {"a", 13, 2}});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(-2));
  EXPECT_THAT(notes_, ::testing::Contains(HasSubstr("of 3 GPUs nothing tells")));
}

TEST_F(CapturedCounters, WhereNothingWasCountedThatIsTold) {
  times({"a"});
  EXPECT_THAT(reads(joined().ranks[0]), ElementsAre(-2));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("the trace has no counters")));
}

// Damage in a file, or a later version's counters.
TEST_F(CapturedCounters, ImpossibleValuesAreNotTaken) {
  times({"a"});
  {
    capture::TestProcess process(folder_.file("counters") / "a.weftcap");
    process.counters("a", ~std::uint64_t{0}, 0, ~0u);
    process.end();
  }
  const Trace trace = joined();
  ASSERT_NE(trace.ranks[0].ops[0].counters, nullptr);
  EXPECT_EQ((*trace.ranks[0].ops[0].counters)[KernelCounter::hbm_read_bytes], std::nullopt);
  EXPECT_EQ((*trace.ranks[0].ops[0].counters)[KernelCounter::fp32_ops], 0);
}

}  // namespace
}  // namespace weft
