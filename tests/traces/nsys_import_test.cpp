#include "traces/nsys/nsys_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/traces/nsys_export.h"
#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NsysExport;
using testing::TemporaryFolder;

constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr std::int64_t kUs = 1'000'000'000;  // fs

class NsysImport : public ::testing::Test {
 protected:
  Trace import(std::vector<std::string> files = {"a.sqlite"}) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& file : files) paths.push_back(folder.file(file));
    notes.clear();
    return import_nsys(paths, notes);
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

TEST_F(NsysImport, TiesKernelsToTheirLaunches) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.gpu(0, "NVIDIA H100 80GB HBM3");
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.launch("relu", 3, 20, 25, 7, 2);
  }
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 1u);
  const TraceRank& rank = trace.ranks[0];
  EXPECT_EQ(rank.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(rank.compute_units, 132u);
  EXPECT_EQ(rank.memory_bytes, std::int64_t{80} << 30);
  ASSERT_EQ(rank.ops.size(), 2u);
  const TraceOp& relu = rank.ops[1];
  EXPECT_EQ(relu.name, "relu");
  EXPECT_EQ(relu.correlation, 2);
  EXPECT_EQ(relu.stream, 7u);
  EXPECT_EQ(relu.issued.count(), 3 * kUs);
  EXPECT_EQ(relu.issue_duration.count(), 2 * kUs);
  EXPECT_EQ(relu.start.count(), 20 * kUs);
  EXPECT_EQ(relu.duration.count(), 5 * kUs);
  ASSERT_TRUE(relu.shape);
  EXPECT_EQ(relu.shape->blocks(), 128u);
  EXPECT_EQ(relu.shape->registers_per_thread, 40u);
  EXPECT_EQ(relu.shape->shared_memory_bytes, 3072u);
  EXPECT_THAT(notes, ElementsAre());
}

TEST_F(NsysImport, CopiesAndMemsetsHaveBytesAndDirection) {
  {
    NsysExport e(folder.file("a.sqlite"));
    // Of pageable memory: the call returns behind the copy.
    e.call("cudaMemcpyAsync_ptsz_v7000", 0, 30, 1);
    e.row("CUPTI_ACTIVITY_KIND_MEMCPY",
          "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind",
          fmt::format("5000, 25000, 0, 7, 1, {}, 4096, 1, 0, 2", NsysExport::kProcess));
    e.row("CUPTI_ACTIVITY_KIND_MEMSET", "start, end, deviceId, streamId, correlationId, globalPid, value, bytes",
          fmt::format("40000, 41000, 0, 7, NULL, {}, 0, 64", NsysExport::kProcess));
  }
  const std::vector<TraceOp> ops = import().ranks.at(0).ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].kind, TraceOpKind::copy);
  EXPECT_EQ(ops[0].copy_direction, "HtoD");
  EXPECT_EQ(ops[0].bytes.count(), 4096);
  EXPECT_EQ(ops[1].kind, TraceOpKind::host_wait);
  EXPECT_EQ(ops[1].name, "cudaMemcpyAsync");
  EXPECT_THAT(ops[1].waits, ElementsAre(0u));
  EXPECT_EQ(ops[2].kind, TraceOpKind::memset);
  EXPECT_EQ(ops[2].bytes.count(), 64);
}

TEST_F(NsysImport, EventsMakeStreamsAndHostsWait) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.call("cudaEventRecord_v3020", 3, 4, 2);
    e.event_record(2, 7, "55");
    e.launch("later", 5, 30, 40, 7, 3);
    e.call("cudaStreamWaitEvent_v3020", 8, 9, 4);
    e.synchronization(2, 4, 13, "55");
    e.launch("copy", 10, 41, 50, 13, 5);
    e.call("cudaStreamSynchronize_v3020", 13, 52, 6);
    e.synchronization(3, 6, 13, "NULL");
    e.call("cudaDeviceSynchronize_v3020", 53, 54, 7);
    e.synchronization(4, 7, 0xffffffff, "0");
  }
  const Trace trace = import();
  EXPECT_THAT(op(trace, "copy").waits, ElementsAre(index(trace, "gemm")));
  EXPECT_THAT(op(trace, "cudaStreamSynchronize").waits, ElementsAre(index(trace, "copy")));
  EXPECT_THAT(op(trace, "cudaDeviceSynchronize").waits, ElementsAre(index(trace, "later"), index(trace, "copy")));
}

// Exports before 2025 have no events' records: the rules for profiles without ids.
TEST_F(NsysImport, WithoutEventsCollectivesWaitForWhatTheirThreadLaunched) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.call("cudaStreamWaitEvent_v3020", 3, 4, 2);
    e.synchronization(2, 2, 20, "NULL");
    e.launch(kAllReduce, 5, 21, 30, 20, 3);
    e.call("cudaStreamWaitEvent_v3020", 8, 9, 4);
    e.synchronization(2, 4, 7, "NULL");
    e.launch("adam", 10, 31, 40, 7, 5);
  }
  const Trace trace = import();
  EXPECT_THAT(op(trace, kAllReduce).waits, ElementsAre(index(trace, "gemm")));
  EXPECT_THAT(op(trace, "adam").waits, ElementsAre(index(trace, kAllReduce)));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("collectives have no sizes")));
}

TEST_F(NsysImport, RangesMarkIterationsPhasesAndLayers) {
  {
    NsysExport e(folder.file("a.sqlite"));
    for (int i = 0; i < 2; ++i) {
      const double t = i * 100.0;
      e.range("iteration " + std::to_string(i), t, t + 90);
      e.range("forward", t + 1, t + 20);
      e.registered_range("layer: encoder.0", t + 2, std::to_string(static_cast<int>(t + 19) * 1000));
      e.launch("gemm", t + 3, t + 10, t + 20, 7, i * 10 + 1);
      e.range("backward", t + 21, t + 60);
      e.launch("gemm_backward", t + 25, t + 30, t + 40, 7, i * 10 + 2, 2);  // of autograd's thread
    }
    e.registered_range("optimizer", 200, "NULL");  // still open when the recording ended
    e.launch("adam", 201, 205, 210, 7, 21);
  }
  const Trace trace = import();
  const TraceRank& rank = trace.ranks[0];
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[1].start.count(), 100 * kUs);
  EXPECT_EQ(op(trace, "gemm").phase, TrainingPhase::forward);
  EXPECT_EQ(op(trace, "gemm").layer, "encoder.0");
  EXPECT_EQ(op(trace, "gemm_backward").phase, TrainingPhase::backward);
  EXPECT_EQ(op(trace, "adam").phase, TrainingPhase::optimizer);
}

TEST_F(NsysImport, CollectivesHaveWhatNcclSaid) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.nccl();
    e.communicator(0xbeef, 8, 3);
    e.collective("ncclAllReduce", 0, 6, 0xbeef, 2000);
    e.launch(kAllReduce, 1, 10, 100, 20, 1);
    e.collective("ncclReduceScatter", 7, 12, 0xbeef, 512);
    e.launch("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", 8, 110, 200, 20, 2);
    e.collective("ncclAllGather", 20, 25, 0xbeef, 300);
    e.launch("ncclDevKernel_AllGather_RING_LL(x)", 21, 210, 300, 20, 3);
    // Two calls in a group, one kernel.
    e.collective("ncclAllReduce", 30, 31, 0xbeef, 20);
    e.collective("ncclAllReduce", 32, 33, 0xbeef, 40);
    e.launch(kAllReduce, 34, 310, 400, 20, 4);
    // The name tells no type: so many bytes could be any number of elements.
    e.collective("ncclAllReduce", 40, 45, 0xbeef, 20);
    e.launch("ncclDevKernel_AllReduce_SumPostDiv(x)", 41, 410, 500, 20, 5);
  }
  const Trace trace = import();
  EXPECT_EQ(trace.world_size, 8u);
  ASSERT_EQ(trace.ranks.size(), 1u);
  EXPECT_EQ(trace.ranks[0].rank, 3u);
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 5u);
  const TraceCollective& first = *ops[0].collective;
  EXPECT_EQ(first.kind, CollectiveKind::all_reduce);
  EXPECT_EQ(first.type, DataType::bf16);
  EXPECT_EQ(first.elements, 1000);
  EXPECT_EQ(first.group_size, 8u);
  EXPECT_EQ(first.group_name, "000000000000beef");
  EXPECT_EQ(ops[1].collective->elements, 1024);  // of the input: 8 parts of 128
  EXPECT_EQ(ops[2].collective->type, DataType::int8);
  EXPECT_EQ(ops[2].collective->elements, 300);
  EXPECT_EQ(ops[3].collective->elements, 30);
  EXPECT_EQ(ops[4].collective->type, std::nullopt);
  EXPECT_EQ(ops[4].collective->elements, std::nullopt);
  EXPECT_EQ(ops[4].collective->group_size, 8u);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("1 of 8 ranks were captured")));
}

TEST_F(NsysImport, ProcessesOfOneExportAreRanks) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.gpu(0, "first");
    e.gpu(1, "second");
    e.nccl();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      e.process = (100 - rank) * NsysExport::kProcess / 4242;  // the later process is rank 0
      e.communicator(0xbeef, 2, rank);
      e.row("TARGET_INFO_CUDA_DEVICE", "gpuId, cudaId, pid", fmt::format("{}, 0, {}", rank, 100 - rank));
      e.collective("ncclAllReduce", 0, 6, 0xbeef, 2000);
      e.launch(kAllReduce, 1, 10 + rank, 100, 20, 1);
    }
  }
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 2u);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(trace.ranks[rank].ops.size(), 1u);
    EXPECT_EQ((trace.ranks[rank].ops[0].start - trace.ranks[0].ops[0].start).count(), rank * kUs);
    EXPECT_EQ(trace.ranks[rank].device, rank == 0 ? "first" : "second");
    EXPECT_THAT(trace.ranks[rank].ops[0].collective->group_ranks, ElementsAre(0u, 1u));
  }
}

TEST_F(NsysImport, GpusOfOneProcessAreRanksByTheirCommunicators) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.nccl();
    // A group of a call each, then a launch each.
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
      e.communicator(0xbeef, 2, 1 - gpu, gpu);
      e.collective("ncclAllReduce", gpu, gpu + 0.5, 0xbeef, 2000 * (gpu + 1));
    }
    for (e.device = 0; e.device < 2; ++e.device)
      e.launch(kAllReduce, 5 + static_cast<double>(e.device), 10 + static_cast<double>(e.device), 100, 20,
               1 + e.device);
  }
  const Trace trace = import();
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ((trace.ranks[0].ops.at(0).start - trace.ranks[1].ops.at(0).start).count(), kUs);
  EXPECT_EQ(trace.ranks[0].ops[0].collective->elements, 2000);
  EXPECT_EQ(trace.ranks[1].ops.at(0).collective->elements, 1000);
  EXPECT_THAT(trace.ranks[1].ops[0].collective->group_ranks, ElementsAre(0u, 1u));
}

TEST_F(NsysImport, FilesAreRanksOnOneClock) {
  for (int rank = 0; rank < 2; ++rank) {
    NsysExport e(folder.file(std::to_string(rank) + ".sqlite"), 1'700'000'000'000'000'000 + rank * 5'000'000);
    e.row("MPI_RANKS", "globalTid, rank", fmt::format("{}, {}", NsysExport::kProcess + 1, 1 - rank));
    e.nccl();
    e.communicator(0xbeef, 2, static_cast<std::uint32_t>(1 - rank));
    e.collective("ncclAllReduce", 0, 6, 0xbeef, 2000);
    e.launch(kAllReduce, 1, 10, 100, 20, 1);
  }
  const Trace trace = import({"0.sqlite", "1.sqlite"});
  ASSERT_EQ(trace.ranks.size(), 2u);
  const auto end = [&](std::size_t rank) {
    return (trace.ranks[rank].ops[0].start + trace.ranks[rank].ops[0].duration).count();
  };
  EXPECT_EQ(end(0), end(1));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("clocks of ranks were moved by up to 5000.0 us")));
}

TEST_F(NsysImport, LaunchesOfGraphsAreTheirKernelsOrOneKernel) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.call("cudaGraphLaunch_v10000", 0, 5, 1);
    e.kernel("first", 10, 20, 7, 1, "101");
    e.kernel("second", 20, 30, 8, 1, "102");
    e.call("cudaGraphLaunch_v10000", 40, 45, 2);
    e.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
          "start, end, deviceId, streamId, correlationId, globalPid, graphId, graphExecId",
          fmt::format("50000, 90000, 0, 7, 2, {}, 1, 2", NsysExport::kProcess));
  }
  const Trace trace = import();
  EXPECT_EQ(op(trace, "second").issued.count(), 0);
  EXPECT_EQ(op(trace, "CUDA graph").duration.count(), 40 * kUs);
  EXPECT_FALSE(op(trace, "CUDA graph").shape);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("1 launches of CUDA graphs stand as one kernel each")));
}

TEST_F(NsysImport, ExportsWithoutProcessesAreOne) {
  {
    NsysExport e(folder.file("a.sqlite"));
    e.launch("gemm", 0, 10, 20, 7, 1);
    e.sql("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid");
  }
  EXPECT_EQ(import().ranks.at(0).ops.at(0).issued.count(), 0);
}

}  // namespace
}  // namespace weft
