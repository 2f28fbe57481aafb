// What NCCL said of its kernels.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/capture/capture_import.h"
#include "tests/capture/capture_records.h"

namespace weft {
namespace {

using capture::CollectiveSource;
using capture::TestProcess;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kAllReduce;

class CapturedCollectives : public testing::CaptureImport {};

TEST_F(CapturedCollectives, CollectivesHaveWhatNcclSaid) {
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

TEST_F(CapturedCollectives, ACallOfNcclBelongsToTheLaunchBehindIt) {
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

TEST_F(CapturedCollectives, ASendToOneRankIsToThatRank) {
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

}  // namespace
}  // namespace weft
