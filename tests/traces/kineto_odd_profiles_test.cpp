// What profiles hold besides the usual: forward passes on autograd's thread or in an optimizer's step, operations that
// overlap on a stream, events that never ran or never ended.
#include <gmock/gmock.h>

#include <map>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using testing::correlation;
using ::testing::ElementsAre;
using testing::gpu_args;
using testing::kineto_event;
using testing::kineto_trace;
using testing::TemporaryFolder;

TraceRank import_rank(const std::vector<std::string>& events) {
  const TemporaryFolder folder;
  return import_kineto({folder.write("trace.json", kineto_trace(events))}).ranks.at(0);
}

// A kernel of 5 us launched at `at` us on thread 1, with the number of that time.
void add_kernel(int at, std::vector<std::string>& events) {
  events.push_back(
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, std::to_string(at) + ".0", "1.0", correlation(at)));
  events.push_back(kineto_event("kernel", "k", 7, std::to_string(at + 2) + ".5", "5.0", gpu_args(7, at)));
}
std::string host(const std::string& cat, const std::string& name, int at, int us, const std::string& args = "") {
  return kineto_event(cat, name, 1, std::to_string(at) + ".0", std::to_string(us) + ".0", args);
}
const std::string kSequence = R"("Sequence number":5)";
const std::string kNode = "autograd::engine::evaluate_function: AccumulateGrad";

std::vector<TrainingPhase> phases(const std::vector<std::string>& events) {
  std::vector<TrainingPhase> found;
  for (const TraceOp& op : import_rank(events).ops) found.push_back(op.phase);
  return found;
}

TEST(KinetoOddProfiles, NodesOnTheMainThreadDoNotMakeItsForwardPassBackward) {
  std::vector<std::string> events{host("cpu_op", "aten::linear", 100, 20, kSequence),
                                  host("cpu_op", "aten::copy_", 130, 20), host("cpu_op", kNode, 200, 50)};
  for (const int at : {110, 140, 210}) add_kernel(at, events);
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::forward, TrainingPhase::forward, TrainingPhase::backward));
}

TEST(KinetoOddProfiles, AllOfAThreadThatHasNodesOnlyIsBackward) {
  std::vector<std::string> events{host("cpu_op", kNode, 100, 50), host("cpu_op", "aten::add_", 110, 10, kSequence),
                                  host("cpu_op", "aten::mul", 200, 20)};
  for (const int at : {112, 210}) add_kernel(at, events);
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::backward, TrainingPhase::backward));
}

// Of PyTorch 1.8.
TEST(KinetoOddProfiles, NodesByTheirOwnNamesAreBackward) {
  std::vector<std::string> events{host("Operator", "aten::linear", 100, 20, kSequence),
                                  host("Operator", "AddmmBackward", 200, 50, kSequence),
                                  host("Operator", "torch::autograd::AccumulateGrad", 260, 20)};
  for (const int at : {110, 210, 265}) add_kernel(at, events);
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::backward));
}

// A profile of the GPU's activities only: the thread's name tells.
TEST(KinetoOddProfiles, AutogradsThreadIsBackwardWithoutOperators) {
  std::vector<std::string> events{
      R"x({"ph":"M","name":"thread_name","pid":0,"tid":2,"ts":0,"args":{"name":"thread 2 (pt_autograd_0)"}})x"};
  for (const auto& [thread, at] : {std::pair{1, 100}, {2, 200}, {1, 300}}) {
    events.push_back(
        kineto_event("cuda_runtime", "cudaLaunchKernel", thread, std::to_string(at), "5", correlation(at)));
    events.push_back(kineto_event("kernel", "k", 7, std::to_string(at + 10), "5", gpu_args(7, at)));
  }
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::optimizer));
}

TEST(KinetoOddProfiles, AClosureInAnOptimizersStepIsForwardAndBackward) {
  std::vector<std::string> events{host("user_annotation", "Optimizer.step#AdamW.step", 100, 300),
                                  host("cpu_op", "aten::linear", 110, 20, kSequence), host("cpu_op", kNode, 150, 50),
                                  host("cpu_op", "aten::linear", 160, 10, kSequence),  // recomputed
                                  host("cpu_op", "aten::add_", 300, 50)};
  for (const int at : {115, 165, 310}) add_kernel(at, events);
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::optimizer));
}

TEST(KinetoOddProfiles, ARangeOfSeveralPhasesSaysNone) {
  std::vector<std::string> events{host("user_annotation", "forward_backward", 100, 200),
                                  host("cpu_op", "aten::linear", 110, 20, kSequence), host("cpu_op", kNode, 150, 50)};
  for (const int at : {115, 165}) add_kernel(at, events);
  EXPECT_THAT(phases(events), ElementsAre(TrainingPhase::forward, TrainingPhase::backward));
}

TEST(KinetoOddProfiles, AnOperationEndsWhereTheNextOneOfItsStreamStarts) {
  const TraceRank rank =
      import_rank({kineto_event("kernel", "early", 7, "100.0", "20.0", gpu_args(7, -1)),
                   kineto_event("kernel", "launched before it ended", 7, "115.0", "20.0", gpu_args(7, -1)),
                   kineto_event("kernel", "within the clock's steps", 7, "134.95", "5.0", gpu_args(7, -1)),
                   kineto_event("kernel", "of another stream", 8, "118.0", "20.0", gpu_args(8, -1))});
  std::map<std::string, Time> durations;
  for (const TraceOp& op : rank.ops) durations[op.name] = op.duration;
  EXPECT_EQ(durations["early"], microseconds(15));
  EXPECT_EQ(durations["launched before it ended"], microseconds(20));
  EXPECT_EQ(durations["within the clock's steps"], microseconds(5));
  EXPECT_EQ(durations["of another stream"], microseconds(20));
}

TEST(KinetoOddProfiles, EventsThatNeverRanOrNeverEndedAreLeftOut) {
  const TraceRank rank = import_rank({kineto_event("kernel", "never ran", 7, "0", "0", gpu_args(7, 3)),
                                      kineto_event("cpu_op", "aten::add", 1, "1000000.0", "-3.0"),
                                      R"({"ph":"X","cat":"cpu_op","name":"aten::mul","pid":0,"tid":1,"ts":1000001.0})",
                                      kineto_event("kernel", "ran", 7, "1000002.0", "5.0", gpu_args(7, -1))});
  ASSERT_EQ(rank.ops.size(), 1U);
  EXPECT_EQ(rank.ops[0].name, "ran");
}

}  // namespace
}  // namespace weft
