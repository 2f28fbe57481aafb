#include <gmock/gmock.h>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/kineto_time.h"
#include "traces/packed_file.h"

namespace weft {
namespace {

using ::testing::AllOf;
using testing::content_of;
using testing::correlation;
using testing::gpu_args;
using ::testing::HasSubstr;
using testing::input_error;
using testing::kineto_event;
using testing::kineto_trace;
using ::testing::Not;
using testing::TemporaryFolder;

std::string error_of(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder.write("bad.json", text);
  const std::string message = input_error([&] { (void)import_kineto({file}); });
  EXPECT_THAT(message, HasSubstr("bad.json"));
  return message;
}

std::string error_of_collective(const std::string& args) {
  return error_of(
      kineto_trace({kineto_event("kernel", "ncclKernel_AllReduce_Sum_f32", 9, "1", "2", gpu_args(9, 1, args))},
                   R"("distributedInfo":{"rank":0,"world_size":2},)"));
}

TEST(KinetoErrors, SaysThatAFileIsMissing) {
  EXPECT_THROW((void)import_kineto({"no/such/file.json.gz"}), MissingInput);
}

TEST(KinetoErrors, RefusesEmptyAndTruncatedFiles) {
  EXPECT_THAT(error_of(""), HasSubstr("empty file"));
  const TemporaryFolder folder;
  write_atomically(folder.file("t.gz"), kineto_trace({kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1))}));
  const std::string packed = content_of(folder.file("t.gz"));
  const auto cut = folder.write("cut.gz", packed.substr(0, packed.size() - 9));
  EXPECT_THAT(input_error([&] { (void)import_kineto({cut}); }), AllOf(HasSubstr("cut.gz"), HasSubstr("truncated")));
}

TEST(KinetoErrors, RefusesWhatIsNoJson) {
  EXPECT_THAT(error_of("once upon a time"), HasSubstr("bad.json"));
  EXPECT_THAT(error_of("   "), HasSubstr("bad.json"));
  EXPECT_THAT(error_of("42"), HasSubstr("Kineto trace"));
  const std::string whole = kineto_trace({kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1))});
  for (std::size_t size = 1; size < whole.size(); size += 3) EXPECT_NE(error_of(whole.substr(0, size)), "") << size;
}

// A small trace with one character changed, at every place: refused or imported, never worse.
TEST(KinetoErrors, SurvivesDamagedFiles) {
  const std::string whole =
      kineto_trace({kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "5", "2", R"("correlation":1)"),
                    kineto_event("kernel", "k", 7, "10", "2", gpu_args(7, 1, R"("grid":[1,1,1],"block":[32,1,1])"))},
                   R"("distributedInfo":{"rank":0,"world_size":2},)");
  const TemporaryFolder folder;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'{', ']', '"', ',', '9', '-'}) {
      std::string damaged = whole;
      damaged[at] = c;
      const auto file = folder.write("damaged.json", damaged);
      try {
        EXPECT_FALSE(import_kineto({file}).ranks.empty());
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(KinetoErrors, RefusesJsonThatIsNoTrace) {
  EXPECT_THAT(error_of("{\"a\": 1}"), HasSubstr("expected a Kineto trace with \"traceEvents\""));
  EXPECT_THAT(error_of("{\"schema\": \"1.0.1\", \"nodes\": []}"), HasSubstr("got an execution trace"));
  EXPECT_THAT(error_of("{\"traceEvents\": 1}"), HasSubstr("list of events"));
  EXPECT_THAT(error_of("[1, 2]"), HasSubstr("/traceEvents/0"));
}

TEST(KinetoErrors, RefusesTracesWithoutGpuOperations) {
  EXPECT_THAT(error_of(kineto_trace({kineto_event("cpu_op", "aten::add", 1, "1", "2")})),
              AllOf(HasSubstr("expected GPU operations"), HasSubstr("got 1 events"), HasSubstr("CUDA?")));
  EXPECT_THAT(error_of("[]"), HasSubstr("got no event at all"));
  EXPECT_THAT(error_of(kineto_trace({kineto_event("cpu_op", "aten::add", 1, "1", "2"),
                                     kineto_event("mtia_ccp_events", "gemm", 1, "2", "2")})),
              HasSubstr("got 2 events and none of them (1 mtia_ccp_events): they are of a device that is no GPU"));
  const std::string of_jax = R"({"ph":"X","pid":1,"tid":13,"ts":1.5,"dur":2,"name":"fusion","args":{"hlo_op":"f"}})";
  EXPECT_THAT(error_of(kineto_trace({of_jax, of_jax})),
              AllOf(HasSubstr("(2 without \"cat\")"), HasSubstr("JAX"), Not(HasSubstr("CUDA?"))));
}

// The place of a file with more kinds of events than a message has room for.
TEST(KinetoErrors, TellsOnlyTheCommonestCategories) {
  std::vector<std::string> events;
  for (int i = 0; i < 100; ++i)
    events.push_back(kineto_event(fmt::format("c{}{}", i, std::string(100, 'x')), "k", 1, "1", "2"));
  for (int i = 0; i < 2; ++i) events.push_back(kineto_event("c7" + std::string(100, 'x'), "k", 1, "1", "2"));
  const std::string message = error_of(kineto_trace(events));
  EXPECT_THAT(message, HasSubstr("(3 c7xxx"));
  EXPECT_LT(message.size(), 500u);
}

TEST(KinetoErrors, RefusesNegativeAndImpossibleTimes) {
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "1", "-2", gpu_args(7, 1))})),
              AllOf(HasSubstr("/traceEvents/0 (k)"), HasSubstr("duration of at least 0")));
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "-1", "2", gpu_args(7, 1))})),
              HasSubstr("time of at least 0"));
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "true", "2", gpu_args(7, 1))})),
              HasSubstr("number of microseconds in \"ts\""));
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "9999999999999999999", "2", gpu_args(7, 1))})),
              HasSubstr("number of microseconds"));
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1)),
                                     kineto_event("kernel", "late", 7, "90000000000", "2", gpu_args(7, 2))})),
              HasSubstr("at most 2.5 hours"));
  // A call, none of whose kernels is late.
  EXPECT_THAT(
      error_of(kineto_trace({kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "1", "90000000000", correlation(1)),
                             kineto_event("kernel", "k", 7, "2", "2", gpu_args(7, 1))})),
      HasSubstr("at most 2.5 hours"));
}

TEST(KinetoErrors, RefusesImpossibleLaunches) {
  EXPECT_THAT(error_of(kineto_trace(
                  {kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1, R"("grid":[-1,1,1],"block":[1,1,1])"))})),
              HasSubstr("a dimension from 0"));
  EXPECT_THAT(error_of(kineto_trace(
                  {kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1, R"("grid":[1.5,1,1],"block":[1,1,1])"))})),
              HasSubstr("/traceEvents/0 (k): expected whole numbers in \"grid\", got 1.5"));
  EXPECT_THAT(error_of(kineto_trace(
                  {kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1, R"("grid":[1,1,1],"block":[4096,1,1])"))})),
              HasSubstr("1024 threads"));
}

TEST(KinetoErrors, RefusesGroupsThatDoNotExist) {
  EXPECT_THAT(error_of_collective(R"("Group size":2,"Process Group Ranks":"[0, 5]")"),
              AllOf(HasSubstr("/traceEvents/0"), HasSubstr("world of 2, got rank 5")));
  EXPECT_THAT(error_of_collective(R"("Group size":8)"), HasSubstr("world of 2, got group size 8"));
  EXPECT_THAT(error_of_collective(R"("Process Group Ranks":"[1]")"), HasSubstr("holds rank 0"));
  EXPECT_THAT(error_of_collective(R"("In msg nelems":-4)"), HasSubstr("at least 0 elements"));
}

TEST(KinetoErrors, RefusesRanksOutsideTheWorld) {
  EXPECT_THAT(error_of(kineto_trace({kineto_event("kernel", "k", 7, "1", "2", gpu_args(7, 1))},
                                    R"("distributedInfo":{"rank":2,"world_size":2},)")),
              HasSubstr("rank below the world size 2, got 2"));
}

TEST(KinetoTime, KeepsEveryNanosecond) {
  EXPECT_EQ(nanoseconds_of("4458677009853.422"), 4'458'677'009'853'422);
  EXPECT_EQ(nanoseconds_of("1695835542514261"), 1'695'835'542'514'261'000);
  EXPECT_EQ(nanoseconds_of("1.0006 "), 1001);
  EXPECT_EQ(nanoseconds_of("1.0004"), 1000);
  EXPECT_EQ(nanoseconds_of("\"12.5\""), 12500);
  EXPECT_EQ(nanoseconds_of("1.5e3"), 1'500'000);
  EXPECT_EQ(nanoseconds_of("-0.5"), -500);
}

TEST(KinetoTime, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", ".", "abc", "1.2.3", "1x", "99999999999999999999", "1e40", "null"})
    EXPECT_EQ(nanoseconds_of(text), std::nullopt) << text;
}

}  // namespace
}  // namespace weft
