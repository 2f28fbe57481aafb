#include "tests/capture/capture_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/capture/capture_records.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using capture::RecordKind;
using capture::TestProcess;
using testing::CaptureImport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kAllReduce;
using testing::TemporaryFolder;

constexpr std::int64_t kUs = 1'000'000'000;  // fs

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

TEST_F(CaptureImport, AGpuThatARankOnlyTouchesIsLeftOut) {
  for (const std::uint32_t rank : {0, 1}) {
    TestProcess p(folder.file(rank == 0 ? "a.weftcap" : "b.weftcap"));
    p.session(static_cast<std::int32_t>(rank), 2);
    for (std::uint32_t i = 1; i <= 30; ++i) p.kernel("gemm", i * 20, i * 20 + 10, 7, i, 0, rank);
    if (rank == 1) p.kernel("fill", 5, 6, 7, 99, 0, 0);
    p.end();
  }
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.ranks[1].ops.size(), 30u);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("left out 1 operations on device 0 (1 of them kernels)")));
}

}  // namespace
}  // namespace weft
