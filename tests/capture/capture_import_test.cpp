#include "traces/capture/capture_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/capture/capture_records.h"
#include "tests/traces/temporary_file.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using capture::CollectiveSource;
using capture::RecordKind;
using capture::TestProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr std::int64_t kUs = 1'000'000'000;  // fs

class CaptureImport : public ::testing::Test {
 protected:
  Trace import() {
    notes.clear();
    return import_capture({folder.file("")}, notes);
  }
  // Of a trace of one rank.
  const TraceOp& op(const Trace& trace, const std::string& name) {
    for (const TraceOp& o : trace.ranks.at(0).ops)
      if (o.name == name) return o;
    ADD_FAILURE() << "no operation " << name;
    return trace.ranks[0].ops.at(0);
  }
  std::uint32_t index(const Trace& trace, const std::string& name) {
    return static_cast<std::uint32_t>(&op(trace, name) - trace.ranks[0].ops.data());
  }

  TemporaryFolder folder;
  std::vector<std::string> notes;
};

TEST_F(CaptureImport, TiesKernelsToTheirLaunches) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.launch("gemm", 0, 10, 20, 7, 1);
  p.launch("relu", 3, 20, 25, 7, 2);
  p.end();
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 1u);
  const TraceRank& rank = trace.ranks[0];
  EXPECT_EQ(rank.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(rank.compute_units, 132u);
  ASSERT_EQ(rank.ops.size(), 2u);
  EXPECT_EQ(rank.ops[1].name, "relu");
  EXPECT_EQ(rank.ops[1].issued.count(), 3 * kUs);
  EXPECT_EQ(rank.ops[1].issue_duration.count(), 2 * kUs);
  EXPECT_EQ(rank.ops[1].start.count(), 20 * kUs);
  EXPECT_EQ(rank.ops[1].duration.count(), 5 * kUs);
  ASSERT_TRUE(rank.ops[1].shape);
  EXPECT_EQ(rank.ops[1].shape->grid[0], 64u);
  EXPECT_EQ(rank.ops[1].shape->shared_memory_bytes, 3072u);
  EXPECT_THAT(notes, ElementsAre());
}

TEST_F(CaptureImport, EventsMakeStreamsWait) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.launch("gemm", 0, 10, 20, 7, 1);
  p.call("cudaEventRecord", 3, 4, 2);
  p.event_record(55, 2, 7);
  p.launch("later", 5, 30, 40, 7, 3);
  p.call("cudaStreamWaitEvent", 8, 9, 4);
  p.synchronization(55, 4, 13);
  p.launch("copy", 10, 41, 50, 13, 5);
  p.end();
  const Trace trace = import();
  EXPECT_THAT(op(trace, "copy").waits, ElementsAre(index(trace, "gemm")));
}

TEST_F(CaptureImport, TheHostWaitsForWhatItSynchronizesWith) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.launch("gemm", 0, 10, 20, 7, 1);
  p.call("cudaStreamSynchronize", 5, 21, 2);
  p.synchronization(0, 2, 7);
  p.launch("relu", 22, 30, 40, 7, 3);
  p.end();
  const Trace trace = import();
  const TraceOp& wait = op(trace, "cudaStreamSynchronize");
  EXPECT_EQ(wait.kind, TraceOpKind::host_wait);
  EXPECT_THAT(wait.waits, ElementsAre(index(trace, "gemm")));
}

TEST_F(CaptureImport, RangesMarkIterationsPhasesAndLayers) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const double t = i * 100.0;
    const std::uint32_t n = i * 10 + 1;
    p.range(n, ("iteration " + std::to_string(i)).c_str(), t, t + 90);
    p.range(n + 1, "forward", t + 1, t + 20);
    p.range(n + 2, "layer: encoder.0", t + 2, t + 19);
    p.launch("gemm", t + 3, t + 10, t + 20, 7, n);
    p.range(n + 3, "backward", t + 21, t + 60);
    // Autograd launches from a thread of its own, which marks nothing.
    p.launch("gemm_backward", t + 25, t + 30, t + 40, 7, n + 1, 2);
    p.range(n + 4, "optimizer step", t + 61, t + 80);
    p.launch("adam", t + 62, t + 65, t + 70, 7, n + 2);
  }
  p.end();
  const Trace trace = import();
  const TraceRank& rank = trace.ranks[0];
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[1].name, "ProfilerStep#1");
  EXPECT_EQ(rank.iterations[1].start.count(), 100 * kUs);
  EXPECT_EQ(op(trace, "gemm").phase, TrainingPhase::forward);
  EXPECT_EQ(op(trace, "gemm").layer, "encoder.0");
  EXPECT_EQ(op(trace, "gemm_backward").phase, TrainingPhase::backward);
  EXPECT_EQ(op(trace, "adam").phase, TrainingPhase::optimizer);
  EXPECT_EQ(rank.ops.back().iteration, 1u);
}

TEST_F(CaptureImport, RangesOfEmitNvtxAreOperators) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.range(1, "aten::conv2d, seq = 12, op_id = 3", 0, 10);
  p.launch("conv", 1, 10, 20, 7, 1);
  p.range(2, "autograd::engine::evaluate_function: ConvolutionBackward0, op_id = 9", 30, 40, 2);
  p.launch("conv_backward", 31, 40, 50, 7, 2, 2);
  p.end();
  const Trace trace = import();
  EXPECT_EQ(op(trace, "conv").op, "aten::conv2d");
  EXPECT_EQ(op(trace, "conv").phase, TrainingPhase::forward);
  EXPECT_EQ(op(trace, "conv_backward").op, "ConvolutionBackward0");
  EXPECT_EQ(op(trace, "conv_backward").phase, TrainingPhase::backward);
}

TEST_F(CaptureImport, CollectivesHaveWhatNcclSaid) {
  TestProcess p(folder.file("a.weftcap"));
  p.session(0, 8);
  p.communicator(0xbeef, 8, 0);
  p.launch(kAllReduce, 0, 10, 100, 20, 1);
  p.collective(0xbeef, "AllReduce", 1000, 2.5);  // behind its launch
  p.launch("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", 5, 110, 200, 20, 2);
  p.collective(0xbeef, "ReduceScatter", 500, 8);
  p.end();
  const Trace trace = import();
  EXPECT_EQ(trace.world_size, 8u);
  const TraceOp& all_reduce = op(trace, kAllReduce);
  ASSERT_TRUE(all_reduce.collective);
  EXPECT_EQ(all_reduce.collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(all_reduce.collective->elements, 1000);
  EXPECT_EQ(all_reduce.collective->type, DataType::fp32);
  EXPECT_EQ(all_reduce.collective->group_size, 8u);
  EXPECT_EQ(all_reduce.collective->group_name, "000000000000beef");
  EXPECT_EQ(all_reduce.collective->algorithm, "RING");
  EXPECT_EQ(all_reduce.collective->protocol, "SIMPLE");
  EXPECT_EQ(all_reduce.collective->channels, 12u);
  EXPECT_EQ(trace.ranks[0].ops[1].collective->elements, 4000);  // of the input: 8 parts of 500
  EXPECT_THAT(notes, ElementsAre(HasSubstr("1 of 8 ranks were captured; without rank 1, 2")));
}

TEST_F(CaptureImport, ACallOfNcclBelongsToTheLaunchBehindIt) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.communicator(1, 2, 0);
  p.collective(1, "AllReduce", 10, 0, CollectiveSource::interposed_call);
  p.launch(kAllReduce, 1, 10, 20, 20, 1);
  // A group: two calls, one kernel.
  p.collective(1, "AllReduce", 20, 30, CollectiveSource::interposed_call);
  p.collective(1, "AllReduce", 30, 31, CollectiveSource::interposed_call);
  p.launch(kAllReduce, 32, 40, 50, 20, 2);
  // Two kernels of a group of two communicators.
  p.collective(1, "AllReduce", 40, 60, CollectiveSource::interposed_call);
  p.collective(1, "AllReduce", 50, 61, CollectiveSource::interposed_call);
  p.launch(kAllReduce, 62, 70, 80, 20, 3);
  p.launch(kAllReduce, 65, 80, 90, 20, 4);
  p.end();
  const Trace trace = import();
  std::vector<std::int64_t> elements;
  for (const TraceOp& o : trace.ranks[0].ops) elements.push_back(*o.collective->elements);
  EXPECT_THAT(elements, ElementsAre(10, 50, 40, 50));
}

TEST_F(CaptureImport, ASendToOneRankIsToThatRank) {
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    TestProcess p(folder.file(std::to_string(rank) + ".weftcap"));
    p.session(static_cast<std::int32_t>(rank), 3);
    p.communicator(9, 3, rank);
    p.launch("ncclDevKernel_SendRecv(x)", 0, 10, 20, 20, 1);
    if (rank == 1) {
      for (const std::int32_t peer : {0, 2}) {
        p.collective(9, "Send", 100, 3, CollectiveSource::profiler_plugin, peer);
        p.collective(9, "Recv", 100, 3, CollectiveSource::profiler_plugin, peer);
      }
    } else {
      p.collective(9, "Send", 100, 3, CollectiveSource::profiler_plugin, 1);
    }
    p.end();
  }
  const Trace trace = import();
  const TraceCollective& one = *trace.ranks[2].ops[0].collective;
  EXPECT_EQ(one.kind, CollectiveKind::send_receive);
  EXPECT_THAT(one.group_ranks, ElementsAre(1u, 2u));
  EXPECT_EQ(one.elements, 100);
  const TraceCollective& both = *trace.ranks[1].ops[0].collective;
  EXPECT_EQ(both.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(both.elements, 200);
  EXPECT_THAT(both.group_ranks, ElementsAre(0u, 1u, 2u));
}

TEST_F(CaptureImport, EdgesOfAGraphAreWaits) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  // Captured as 1 -> 2, 1 -> 3; the executable graph has copies of the nodes.
  p.graph(RecordKind::graph_edge, 1, 2);
  p.graph(RecordKind::graph_edge, 3, 1);
  for (std::uint64_t node = 1; node <= 3; ++node) p.graph(RecordKind::graph_clone, node + 100, node);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const double t = i * 100.0;
    p.call("cudaGraphLaunch", t, t + 5, i + 1);
    p.kernel("first", t + 10, t + 20, 7, i + 1, 101);
    p.kernel("second", t + 20, t + 30, 8, i + 1, 102);
    p.kernel("third", t + 21, t + 30, 9, i + 1, 103);
  }
  p.end();
  const Trace trace = import();
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 6u);
  EXPECT_THAT(ops[1].waits, ElementsAre(0u));
  EXPECT_THAT(ops[2].waits, ElementsAre(0u));
  EXPECT_THAT(ops[3].waits, ElementsAre());  // another launch: the stream's order is enough
  EXPECT_THAT(ops[4].waits, ElementsAre(3u));
}

// Four ranks, of which two are on a host whose clock is 3 ms ahead; all collectives end together.
void write_job(const TemporaryFolder& folder, std::uint32_t ranks, bool said) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    // Names sort against the ranks.
    TestProcess p(folder.file("node-" + std::to_string(9 - rank) + ".weftcap"), rank >= 2 ? 3000 : 0);
    p.session(said ? static_cast<std::int32_t>(rank) : -1, said ? 4 : -1);
    p.communicator(0xbeef, 4, rank);
    p.communicator(0xa0 + rank / 2, 2, rank % 2);
    for (std::uint32_t i = 0; i < 5; ++i) {
      const double t = i * 1000.0;
      p.launch("gemm", t, t + 10, t + 100 + rank, 7, i * 3 + 1);
      p.launch(kAllReduce, t + 5, t + 100 + rank, t + 200 + 0.1 * rank, 20, i * 3 + 2);
      p.collective(0xbeef, "AllReduce", 1000, t + 8);
      p.launch(kAllReduce, t + 15, t + 210, t + 300, 20, i * 3 + 3);
      p.collective(0xa0 + rank / 2, "AllReduce", 10, t + 18);
    }
    p.end();
  }
}

TEST_F(CaptureImport, RanksOfAJobMakeOneTraceOnOneClock) {
  for (const bool said : {true, false}) {
    SCOPED_TRACE(said);
    write_job(folder, 4, said);
    const Trace trace = import();
    EXPECT_EQ(trace.world_size, 4u);
    ASSERT_EQ(trace.ranks.size(), 4u);
    for (std::uint32_t r = 0; r < 4; ++r) EXPECT_EQ(trace.ranks[r].rank, r);
    const auto end = [&](std::uint32_t rank, std::size_t i) {
      const TraceOp& o = trace.ranks[rank].ops[i];
      return (o.start + o.duration).count();
    };
    for (std::size_t i = 1; i < 15; i += 3)
      for (std::uint32_t r = 1; r < 4; ++r) EXPECT_LT(std::abs(end(r, i) - end(0, i)), kUs / 2);
    EXPECT_THAT(trace.ranks[3].ops[1].collective->group_ranks, ElementsAre(0u, 1u, 2u, 3u));
    EXPECT_THAT(trace.ranks[3].ops[2].collective->group_ranks, ElementsAre(2u, 3u));
    EXPECT_THAT(trace.ranks[0].ops[2].collective->group_ranks, ElementsAre(0u, 1u));
    EXPECT_THAT(notes, ElementsAre(HasSubstr("clocks of ranks were moved by up to 3000.")));
    write_trace(trace, folder.file("trace.json.gz"));
    const Trace read = read_trace(folder.file("trace.json.gz"));
    EXPECT_EQ(read.ranks[3].ops.size(), trace.ranks[3].ops.size());
    EXPECT_EQ(read.ranks[3].ops[2].collective->algorithm, "RING");
    EXPECT_EQ(read.ranks[3].ops[2].collective->protocol, "SIMPLE");
    EXPECT_EQ(read.ranks[3].ops[2].collective->channels, 12u);
  }
}

TEST_F(CaptureImport, RanksThatAreMissingAreNamed) {
  write_job(folder, 3, true);
  const Trace trace = import();
  EXPECT_EQ(trace.world_size, 4u);
  EXPECT_EQ(trace.ranks.size(), 3u);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("3 of 4 ranks were captured; without rank 3")));
  // The group of ranks 2 and 3 is known by its size only.
  EXPECT_EQ(trace.ranks[2].ops[2].collective->group_size, 2u);
  EXPECT_TRUE(trace.ranks[2].ops[2].collective->group_ranks.empty());
}

TEST_F(CaptureImport, TellsWhatWasLost) {
  {
    TestProcess p(folder.file("a.weftcap"));
    p.session();
    p.launch("gemm", 0, 10, 20, 7, 1);
    p.dropped(3);
    p.dropped(4);
    p.file().note("CUPTI does not record activities of kind 46");
    p.kernel("backwards", 30, 20, 7, 2);
  }
  {
    TestProcess p(folder.file("b.weftcap"));
    p.session();
    p.end();
  }
  const Trace trace = import();
  EXPECT_EQ(trace.ranks[0].ops.size(), 1u);
  EXPECT_THAT(notes,
              ElementsAre(HasSubstr("kind 46"), HasSubstr("did not end in order"), HasSubstr("7 records were dropped"),
                          HasSubstr("1 records with impossible times"), HasSubstr("1 processes ran nothing")));
}

TEST_F(CaptureImport, RefusesWhatIsNoRun) {
  EXPECT_THROW((void)import(), MissingInput);
  {
    TestProcess p(folder.file("a.weftcap"));
    p.session();
    p.end();
  }
  EXPECT_THAT(testing::input_error([&] { (void)import(); }), HasSubstr("expected operations on a GPU, got none"));
}

TEST_F(CaptureImport, RefusesTwoProcessesOfOneRank) {
  for (const char* name : {"a.weftcap", "b.weftcap"}) {
    TestProcess p(folder.file(name));
    p.session(1, 2);
    p.launch("gemm", 0, 10, 20, 7, 1);
    p.end();
  }
  EXPECT_THAT(testing::input_error([&] { (void)import(); }), HasSubstr("expected each rank once, got rank 1"));
}

TEST_F(CaptureImport, OneProcessMayDriveSeveralGpus) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.call("cudaLaunchKernel", 0, 1, 1);
  p.kernel("left", 10, 20, 7, 1, 0, 0);
  p.call("cudaLaunchKernel", 2, 3, 2);
  p.kernel("right", 10, 20, 9, 2, 0, 3);
  p.end();
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.ranks[0].ops[0].name, "left");
  EXPECT_EQ(trace.ranks[1].ops[0].name, "right");
}

}  // namespace
}  // namespace weft
