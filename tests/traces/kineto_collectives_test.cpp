// What a trace's collectives are, and how much they move.
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

Trace import_text(const std::string& text) {
  const testing::TemporaryFolder folder;
  return import_kineto({folder.write("trace.json", text)});
}

TEST(KinetoCollectives, TakesElementsFromTheTensorsOfTheAnnotation) {
  std::vector<std::string> events = {
      kineto_event("user_annotation", "nccl:all_to_all", 1, "100", "20",
                   R"("Input Dims":[[2,3],[4]],"Input type":["c10::Half","c10::Half"])"),
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "105", "2", correlation(1)),
      kineto_event("kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", 15, "110", "5", gpu_args(15, 1))};
  const Trace trace = import_text(kineto_trace(events));
  const TraceOp& op = trace.ranks[0].ops[0];
  ASSERT_TRUE(op.collective.has_value());
  EXPECT_EQ(op.collective->kind, CollectiveKind::all_to_all);
  EXPECT_EQ(op.collective->elements, 10);
  EXPECT_EQ(op.collective->type, DataType::fp16);
}

// Not of NCCL: the operator tells what it is and how much, the kernel the type.
TEST(KinetoCollectives, OperatorsOfSymmetricMemoryAreCollectives) {
  const std::string all_reduce = "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)";
  const auto import_in = [&](const std::string& op, const std::string& kernel) {
    return import_text(kineto_trace({kineto_event("cpu_op", op, 1, "100", "20",
                                                  R"("External id":7,"Input Dims":[[64,32],[],[]],)"
                                                  R"("Input type":["c10::BFloat16","Scalar",""])"),
                                     kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "105", "2", correlation(1)),
                                     kineto_event("kernel", kernel, 15, "110", "5", gpu_args(15, 1))}));
  };
  const Trace trace = import_in("symm_mem::multimem_all_reduce_", all_reduce);
  const TraceOp& op = trace.ranks[0].ops[0];
  ASSERT_EQ(op.kind, TraceOpKind::collective);
  EXPECT_EQ(op.collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(op.collective->elements, 64 * 32);
  EXPECT_EQ(op.collective->type, DataType::bf16);
  const auto kind_in = [&](const std::string& o, const std::string& kernel) {
    return import_in(o, kernel).ranks[0].ops[0].kind;
  };
  EXPECT_EQ(kind_in("mine::multimem_all_reduce_", all_reduce), TraceOpKind::kernel);
  EXPECT_EQ(kind_in("symm_mem::fused_matmul_reduce_scatter", "void splitKreduce_kernel<32>(x)"), TraceOpKind::kernel);
}

TEST(KinetoCollectives, KnowsTheKernelsOfSymmetricBuffers) {
  const Trace trace = import_text(kineto_trace(
      {kineto_event("kernel", "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)", 15, "110",
                    "5", gpu_args(15, 1))}));
  const TraceOp& op = trace.ranks[0].ops[0];
  ASSERT_TRUE(op.collective.has_value());
  EXPECT_EQ(op.collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(op.collective->type, DataType::bf16);
}

// Text as PyTorch writes it, of more than 30 only the ends; or a list, as converters do.
TEST(KinetoCollectives, RanksOfAGroupInEachForm) {
  const auto ranks_with = [](const std::string& args) {
    const testing::TemporaryFolder folder;
    const auto file =
        folder.write("t.json", kineto_trace({kineto_event("kernel", "ncclDevKernel_AllReduce_Sum_f32", 9, "1", "2",
                                                          gpu_args(9, 1, R"("Group size":3,)" + args))},
                                            R"("distributedInfo":{"rank":0,"world_size":8},)"));
    return import_kineto({file}).ranks.at(0).ops.at(0).collective->group_ranks;
  };
  EXPECT_THAT(ranks_with(R"("Process Group Ranks":"[0, 2, 4]")"), ElementsAre(0u, 2u, 4u));
  EXPECT_THAT(ranks_with(R"("Process Group Ranks":[0, 2, 4])"), ElementsAre(0u, 2u, 4u));
  const std::string abridged = R"("Process Group Ranks":"[0, ..., 4]","Global rank start":0,"Global rank stride":)";
  EXPECT_THAT(ranks_with(abridged + "2"), ElementsAre(0u, 2u, 4u));
  EXPECT_THAT(ranks_with(abridged + "-1"), IsEmpty());
}

TEST(KinetoCollectives, ImportsCollectivesThatHaveOnlyAName) {
  const Trace trace = import_text(kineto_trace(
      {kineto_event("kernel", "ncclDevKernel_ReduceScatter_Sum_f16_RING_LL(x)", 15, "110", "5", gpu_args(15, 1))}));
  const TraceOp& op = trace.ranks[0].ops[0];
  ASSERT_TRUE(op.collective.has_value());
  EXPECT_EQ(op.collective->kind, CollectiveKind::reduce_scatter);
  EXPECT_FALSE(op.collective->elements.has_value());
  EXPECT_EQ(op.collective->type, DataType::fp16);
}

}  // namespace
}  // namespace weft
