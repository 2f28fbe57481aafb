// Which devices and clocks a run of several profiles has.
#include <gmock/gmock.h>

#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/kineto_import.h"
#include "traces/trace_info.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::input_error;
using testing::kineto_event;
using testing::kineto_trace;
using ::testing::Not;
using testing::TemporaryFolder;

std::string on_device(int device, const std::string& cat, const std::string& name, double us) {
  return kineto_event(cat, name, 7, fmt::format("{:.1f}", us), "5.0",
                      fmt::format(R"("device":{},"stream":7,"correlation":{})", device, static_cast<int>(us)));
}
std::string of_rank(int rank) { return fmt::format(R"("distributedInfo":{{"rank":{},"world_size":2}},)", rank); }

class KinetoRanks : public ::testing::Test {
 protected:
  // A rank whose work is on its own device, with `more` beside it.
  std::filesystem::path rank(int number, std::vector<std::string> more, bool says = true) {
    for (int i = 0; i < 40; ++i) more.push_back(on_device(number, "kernel", "k", 10 + 10.0 * i));
    return folder.write(fmt::format("{}.json", number), kineto_trace(more, says ? of_rank(number) : ""));
  }
  TemporaryFolder folder;
  std::vector<std::string> notes;
};

TEST_F(KinetoRanks, DevicesThatAreOnlyTouchedAreLeftOut) {
  const auto zero = rank(0, {on_device(1, "gpu_memcpy", "Memcpy PtoP (Device -> Device)", 500)});
  const auto one = rank(1, {on_device(0, "gpu_memset", "Memset (Device)", 1), on_device(0, "kernel", "fill", 2)});
  const Trace trace = import_kineto({zero, one}, notes);
  ASSERT_EQ(trace.ranks.size(), 2u);
  for (const TraceRank& r : trace.ranks) EXPECT_EQ(r.ops.size(), 40u);
  EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("0.json"), HasSubstr("left out 1 operations on device 1 (0 of them")),
                                 AllOf(HasSubstr("1.json"), HasSubstr("left out 2 operations on device 0 (1 of"))));
}

TEST_F(KinetoRanks, OneProcessThatWorksOnSeveralDevicesIsNoRank) {
  std::vector<std::string> replica;
  for (int i = 0; i < 20; ++i) replica.push_back(on_device(1, "kernel", "k", 10 + 10.0 * i));
  const auto file = rank(0, replica);
  EXPECT_THAT(input_error([&] { (void)import_kineto({file}, notes); }),
              HasSubstr("0.json: expected one GPU for each rank, got a process that works on devices 0, 1"));
  // Alone, and without a rank of its own, it has each of them as one.
  EXPECT_EQ(import_kineto({rank(0, replica, false)}, notes).ranks.size(), 2u);
  EXPECT_TRUE(notes.empty());
}

// All-reduces that begin and end at the same times, by clocks that are `apart_us`.
std::vector<std::string> all_reduces(double apart_us, int count = 3, double every_us = 100) {
  std::vector<std::string> events;
  for (int i = 0; i < count; ++i)
    events.push_back(kineto_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20,
                                  fmt::format("{:.1f}", 1000 + every_us * i + apart_us), "50.0",
                                  R"("device":0,"stream":20)"));
  return events;
}

TEST_F(KinetoRanks, ClocksOfSeveralHostsAreAligned) {
  const auto file = [&](int rank, double apart_us) {
    return folder.write(fmt::format("{}.json", rank), kineto_trace(all_reduces(apart_us), of_rank(rank)));
  };
  const Trace trace = import_kineto({file(0, 0), file(1, 2500)}, notes);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(trace.ranks[0].ops[i].start, trace.ranks[1].ops[i].start);
  EXPECT_EQ(trace.ranks[0].ops[0].start, Time());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("moved by up to 2500.0 us")));
  EXPECT_THAT(trace_info_text(trace), HasSubstr("clocks of ranks                      moved by up to 2500.0 us"));
  EXPECT_DOUBLE_EQ(trace_info_json(trace)["per_rank"][0]["clock_moved_s"].get<double>(), 2500e-6);

  notes.clear();
  const Trace one_host = import_kineto({file(0, 0), file(1, 7)}, notes);
  EXPECT_EQ(one_host.ranks[1].ops[0].start, microseconds(7));
  EXPECT_TRUE(notes.empty());
  EXPECT_THAT(trace_info_text(one_host), Not(HasSubstr("clocks")));
}

// As of hosts that count from when they started.
TEST_F(KinetoRanks, ClocksThatHaveNothingToDoWithEachOtherAreJoinedByCollectives) {
  constexpr double kDay = 86400e6;
  const auto import = [&](const std::vector<std::string>& other) {
    return import_kineto({folder.write("0.json", kineto_trace(all_reduces(0), of_rank(0))),
                          folder.write("1.json", kineto_trace(other, of_rank(1)))},
                         notes);
  };
  const Trace trace = import(all_reduces(kDay));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(trace.ranks[0].ops[i].start, trace.ranks[1].ops[i].start);
  EXPECT_THAT(notes, Contains(HasSubstr("clocks of ranks were up to 86400 s apart")));

  const auto refused = [&](const std::vector<std::string>& other) { return input_error([&] { (void)import(other); }); };
  // Another run of the same program, one collective, and none.
  EXPECT_THAT(refused(all_reduces(kDay, 3, 400)),
              AllOf(HasSubstr("1.json: expected ranks of one run"), HasSubstr("begins 86400 s after the first"),
                    HasSubstr("collectives of rank 0 that end 300 us apart")));
  EXPECT_THAT(refused(all_reduces(kDay, 1)), HasSubstr("and 1 collectives of rank 0 that end together with others"));
  EXPECT_THAT(refused({on_device(0, "kernel", "k", kDay)}), HasSubstr("and 0 collectives of rank 0"));
}

}  // namespace
}  // namespace weft
