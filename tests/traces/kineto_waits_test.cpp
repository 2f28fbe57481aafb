#include <gmock/gmock.h>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using testing::correlation;
using ::testing::ElementsAre;
using testing::gpu_args;
using ::testing::IsEmpty;
using testing::kineto_event;
using testing::kineto_trace;
using testing::TemporaryFolder;

std::vector<TraceOp> ops_of(const std::vector<std::string>& events) {
  const TemporaryFolder folder;
  return import_kineto({folder.write("t.json", kineto_trace(events))}).ranks[0].ops;
}

std::string call(const std::string& name, const std::string& ts, int id, const std::string& dur = "1") {
  return kineto_event("cuda_runtime", name, 1, ts, dur, correlation(id));
}
std::string launch(const std::string& ts, int id) { return call("cudaLaunchKernel", ts, id); }
std::string kernel(const std::string& name, int stream, const std::string& ts, const std::string& dur, int id) {
  return kineto_event("kernel", name, stream, ts, dur, gpu_args(stream, id));
}

TEST(KinetoWaits, JoinsStreamWaitsWithTheirEventRecords) {
  const std::vector<TraceOp> ops =
      ops_of({launch("10", 1), kernel("a", 7, "20", "10", 1), call("cudaEventRecord", "12", 2), launch("14", 3),
              kernel("b", 7, "31", "10", 3), call("cudaStreamWaitEvent", "16", 4), launch("18", 5),
              kernel("c", 20, "32", "5", 5),
              kineto_event("cuda_sync", "Stream Wait Event", 20, "16", "1",
                           R"("stream":20,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2,"correlation":4)")});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_THAT(ops[1].waits, IsEmpty());
  EXPECT_THAT(ops[2].waits, ElementsAre(0));  // not b, which was launched after the record
}

// As exporters write it that know the record of an event, but not its stream.
TEST(KinetoWaits, AnEventWithoutItsStreamIsOfTheOneThatItsThreadUsedLast) {
  const std::vector<TraceOp> ops = ops_of(
      {launch("10", 1), kernel("a", 7, "20", "10", 1), call("cudaEventRecord", "12", 2),
       call("cudaStreamWaitEvent", "16", 4), launch("18", 5), kernel("c", 20, "32", "5", 5),
       kineto_event("cuda_sync", "Stream Wait Event", 20, "16", "1",
                    R"("stream":20,"wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":2,"correlation":4)")});
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
}

TEST(KinetoWaits, IgnoresEventsRecordedBeforeTheTrace) {
  const std::vector<TraceOp> ops = ops_of(
      {launch("10", 1), kernel("a", 7, "20", "10", 1), call("cudaStreamWaitEvent", "16", 4), launch("18", 5),
       kernel("c", 20, "32", "5", 5),
       kineto_event("cuda_sync", "Stream Wait Event", 20, "16", "1",
                    R"("stream":20,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":-1,"correlation":4)")});
  EXPECT_THAT(ops[1].waits, IsEmpty());
}

std::vector<std::string> collective_events(const std::string& input_start, const std::string& output_start) {
  return {launch("10", 1),
          kernel("gradient", 7, input_start, "10", 1),
          kineto_event("user_annotation", "nccl:all_reduce", 1, "11", "6"),
          call("cudaStreamWaitEvent", "12", 2),
          launch("14", 3),
          kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 40, "31", "20", 3),
          call("cudaStreamWaitEvent", "16", 4),
          call("cudaStreamWaitEvent", "30", 5),
          launch("32", 6),
          kernel("step", 7, output_start, "5", 6)};
}

TEST(KinetoWaits, InfersThatACollectiveWaitsForItsInputAndIsWaitedFor) {
  const std::vector<TraceOp> ops = ops_of(collective_events("20", "51"));
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].kind, TraceOpKind::collective);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_THAT(ops[2].waits, ElementsAre(1));
}

// As FSDP's copies into a buffer on a stream of its own, and a kernel that goes on with what came out of it.
TEST(KinetoWaits, InfersWaitsBetweenStreamsThatCompute) {
  const auto events = [](const std::string& side_start, const std::string& main_start) {
    return std::vector<std::string>{launch("10", 1),
                                    kernel("gradient", 7, "20", "10", 1),
                                    call("cudaStreamWaitEvent", "12", 2),
                                    launch("14", 3),
                                    kernel("copy", 27, side_start, "5", 3),
                                    launch("16", 4),  // of the same stream: behind the one before anyway
                                    kernel("scale", 27, "36", "5", 4),
                                    call("cudaStreamWaitEvent", "18", 5),
                                    launch("20", 6),
                                    kernel("step", 7, main_start, "5", 6)};
  };
  const std::vector<TraceOp> ops = ops_of(events("31", "42"));
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_THAT(ops[2].waits, IsEmpty());
  EXPECT_THAT(ops[3].waits, ElementsAre(2));

  const std::vector<TraceOp> beside = ops_of(events("25", "37"));  // they began before it had ended
  EXPECT_THAT(beside[1].waits, IsEmpty());
  EXPECT_THAT(beside[3].waits, IsEmpty());
}

// A prefetcher: the next batch is copied while a step runs, which waits for it at its end (Stream.wait_stream).
TEST(KinetoWaits, InfersTheWaitForAPrefetchThatTheThreadHasLongLaunched) {
  const auto events = [](const std::string& wait, const std::string& next_start) {
    return std::vector<std::string>{launch("10", 1),     kernel("Memcpy HtoD", 27, "20", "30", 1),
                                    launch("12", 2),     kernel("forward", 7, "21", "10", 2),
                                    launch("14", 3),     kernel("backward", 7, "32", "10", 3),
                                    call(wait, "16", 4), call("cudaStreamWaitEvent", "18", 5),
                                    launch("20", 6),     kernel("next", 7, next_start, "5", 6),
                                    call(wait, "22", 7), call("cudaStreamWaitEvent", "24", 8),
                                    launch("26", 9),     kernel("after", 7, "70", "5", 9)};
  };
  const std::vector<TraceOp> ops = ops_of(events("cudaEventRecordWithFlags", "51"));
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_THAT(ops[3].waits, ElementsAre(0));
  EXPECT_THAT(ops[4].waits, IsEmpty());                                               // nothing new was on that stream
  EXPECT_THAT(ops_of(events("cudaEventRecordWithFlags", "45"))[3].waits, IsEmpty());  // it had not ended
  EXPECT_THAT(ops_of(events("cudaEventQuery", "51"))[3].waits,
              IsEmpty());  // of an event recorded long ago, as Work::wait
}

// All launched by one call, so that no call tells who waits for whom.
TEST(KinetoWaits, InfersTheWaitsOfCollectivesInACudaGraph) {
  const auto events = [](const std::string& reduced_start, const std::string& after_start) {
    return std::vector<std::string>{call("cudaGraphLaunch", "10", 1), kernel("backward", 7, "20", "10", 1),
                                    kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 40, reduced_start, "20", 1),
                                    kernel("beside", 7, "31", "8", 1), kernel("step", 7, after_start, "5", 1)};
  };
  const std::vector<TraceOp> ops = ops_of(events("30.5", "51"));
  ASSERT_EQ(ops.size(), 4u);
  ASSERT_EQ(ops[1].kind, TraceOpKind::collective);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_THAT(ops[2].waits, IsEmpty());
  EXPECT_THAT(ops[3].waits, ElementsAre(1));

  const std::vector<TraceOp> apart = ops_of(events("25", "70"));
  EXPECT_THAT(apart[1].waits, IsEmpty());  // the kernel had not ended
  EXPECT_THAT(apart[3].waits, IsEmpty());  // it began long after
}

TEST(KinetoWaits, InfersNothingThatTheTimesContradict) {
  const std::vector<TraceOp> ops = ops_of(collective_events("28", "40"));
  EXPECT_THAT(ops[1].waits, IsEmpty());
  EXPECT_THAT(ops[2].waits, IsEmpty());
}

// Of two collectives, the first of which nothing waits for, and a kernel that had been issued long before it started.
TEST(KinetoWaits, AWaitIsForTheCollectiveAsWhoseEndTheNextOperationStarted) {
  const auto waits_of_last = [](const std::string& start, const std::string& before) {
    return ops_of({launch("10", 1), kernel("gradient", 7, "20", before, 1),
                   kineto_event("user_annotation", "nccl:all_reduce", 1, "11", "6"), launch("12", 2),
                   kernel("ncclKernel_AllReduce_RING_LL_Sum_float(x)", 40, "31", "10", 2),
                   kineto_event("user_annotation", "nccl:all_to_all", 1, "18", "6"), launch("19", 3),
                   kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 40, "41", "60", 3),
                   call("cudaStreamWaitEvent", "30", 4), launch("32", 5), kernel("cat", 7, start, "5", 5)})
        .back()
        .waits;
  };
  EXPECT_THAT(waits_of_last("103", "10"), ElementsAre(2));
  EXPECT_THAT(waits_of_last("150", "10"), ElementsAre(1));  // neither held it: the earliest
  EXPECT_THAT(waits_of_last("103", "82"), ElementsAre(1));  // its own stream did
}

TEST(KinetoWaits, WaitsOfTheHostForTheDeviceCoverAllStreams) {
  const std::vector<TraceOp> ops =
      ops_of({launch("10", 1), kernel("a", 7, "20", "10", 1), launch("12", 2), kernel("b", 8, "20", "30", 2),
              call("cudaDeviceSynchronize", "15", 3, "40"), launch("60", 4), kernel("c", 7, "70", "1", 4)});
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[2].kind, TraceOpKind::host_wait);
  EXPECT_EQ(ops[2].name, "cudaDeviceSynchronize");
  EXPECT_EQ(ops[2].duration, microseconds(40));
  EXPECT_THAT(ops[2].waits, ElementsAre(0, 1));
}

TEST(KinetoWaits, AStreamWaitCoversTheStreamOfItsThread) {
  const std::vector<TraceOp> ops =
      ops_of({launch("10", 1), kernel("a", 7, "20", "100", 1), launch("12", 2), kernel("b", 8, "20", "10", 2),
              call("cudaStreamSynchronize", "15", 3, "20")});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_THAT(ops[2].waits, ElementsAre(1));
}

TEST(KinetoWaits, AnEventWaitWithoutIdIsForWhatEndedMeanwhile) {
  const std::vector<TraceOp> ops =
      ops_of({launch("10", 1), kernel("a", 7, "20", "20", 1), launch("11", 2), kernel("b", 8, "20", "300", 2),
              call("cudaEventSynchronize", "15", 3, "26")});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_THAT(ops[2].waits, ElementsAre(0));
}

// DDP waits for its last bucket at the end of autograd's thread, and does nothing more there.
TEST(KinetoWaits, WhatAThreadWaitsForIsWaitedForOnItsStream) {
  const auto on_autograds = [](const std::string& name, const std::string& ts, int id) {
    return kineto_event("cuda_runtime", name, 2, ts, "1", correlation(id));
  };
  const std::vector<TraceOp> ops =
      ops_of({launch("5", 1), kernel("forward", 7, "10", "20", 1), on_autograds("cudaLaunchKernel", "10", 2),
              kernel("backward", 7, "30", "20", 2), on_autograds("cudaLaunchKernel", "15", 3),
              kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, "52", "40", 3),
              on_autograds("cudaStreamWaitEvent", "20", 4), launch("25", 5), kernel("adam", 7, "94", "10", 5),
              on_autograds("cudaLaunchKernel", "120", 6), kernel("next backward", 7, "130", "20", 6)});
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_THAT(ops[2].waits, ElementsAre(1));
  EXPECT_THAT(ops[3].waits, ElementsAre(2));
  EXPECT_THAT(ops[4].waits, IsEmpty());
}

// FSDP's last one is on a stream that autograd's thread used for copies.
TEST(KinetoWaits, AThreadMayHaveUsedTheStreamBefore) {
  const auto on_autograds = [](const std::string& name, const std::string& ts, int id) {
    return kineto_event("cuda_runtime", name, 2, ts, "1", correlation(id));
  };
  const std::vector<TraceOp> ops =
      ops_of({on_autograds("cudaLaunchKernel", "10", 1), kernel("backward", 7, "20", "20", 1),
              on_autograds("cudaLaunchKernel", "15", 2), kernel("divide", 8, "42", "20", 2),
              on_autograds("cudaStreamWaitEvent", "20", 3), launch("25", 4), kernel("adam", 7, "64", "10", 4)});
  EXPECT_THAT(ops.at(2).waits, ElementsAre(1));
}

// As FSDP's prefetches: the library's stream is waited for at once, on a stream that has no kernel, and later by what
// uses it. The wait between both is of a copy for the next collective.
TEST(KinetoWaits, AWaitOnAnotherStreamDoesNotHoldTheComputation) {
  const std::string wait = "cudaStreamWaitEvent";
  const std::vector<TraceOp> ops =
      ops_of({launch("5", 1), kernel("a", 7, "10", "100", 1), launch("15", 2),
              kernel("ncclDevKernel_AllGather_RING_LL", 20, "30", "20", 2), call(wait, "18", 3), launch("20", 4),
              kernel("b", 7, "112", "50", 4), call(wait, "22", 5), launch("24", 6), kernel("copy", 8, "163", "30", 6),
              call(wait, "26", 7), launch("28", 8), kernel("c", 7, "165", "20", 8)});
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_THAT(ops[1].waits, IsEmpty());
  EXPECT_THAT(ops[2].waits, IsEmpty());
  EXPECT_THAT(ops[3].waits, ElementsAre(2));
  EXPECT_THAT(ops[4].waits, ElementsAre(1));
  // Used at once.
  const std::vector<TraceOp> used =
      ops_of({launch("5", 1), kernel("a", 7, "10", "100", 1), launch("15", 2),
              kernel("ncclDevKernel_AllGather_RING_LL", 20, "30", "20", 2), call(wait, "18", 3), call(wait, "20", 4),
              launch("24", 6), kernel("b", 7, "112", "50", 6)});
  EXPECT_THAT(used.at(2).waits, ElementsAre(1));
}

// As the all-reduce of gradients' norm behind a backward pass whose thread is autograd's.
TEST(KinetoWaits, ACollectiveWaitsForWhatOtherThreadsLaunchedOnTheStream) {
  const std::vector<TraceOp> ops =
      ops_of({launch("5", 1), kernel("forward", 7, "10", "20", 1),
              kineto_event("cuda_runtime", "cudaLaunchKernel", 2, "10", "1", correlation(2)),
              kernel("backward", 7, "30", "20", 2), launch("15", 3),
              kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, "52", "40", 3)});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_THAT(ops[2].waits, ElementsAre(1));
}

TEST(KinetoWaits, ABlockingCopyIsFollowedByAWait) {
  const std::vector<TraceOp> ops = ops_of(
      {call("cudaMemcpyAsync", "10", 1, "50"),
       kineto_event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, "20", "30", gpu_args(7, 1, R"("bytes":8)")),
       call("cudaMemcpyAsync", "70", 2, "5"),
       kineto_event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, "80", "30", gpu_args(7, 2, R"("bytes":8)"))});
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].kind, TraceOpKind::host_wait);
  EXPECT_THAT(ops[1].waits, ElementsAre(0));
  EXPECT_EQ(ops[2].kind, TraceOpKind::copy);
}

TEST(KinetoWaits, AHostCallThatWaitedForNothingIsLeftOut) {
  const std::vector<TraceOp> ops = ops_of({call("cudaDeviceSynchronize", "5", 9, "1"), launch("10", 1),
                                           kernel("a", 7, "20", "20", 1), call("cudaEventSynchronize", "50", 3, "2")});
  EXPECT_EQ(ops.size(), 1u);
}

}  // namespace
}  // namespace weft
