
#include <gmock/gmock.h>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/packed_file.h"

namespace weft {
namespace {

using testing::correlation;
using ::testing::ElementsAre;
using testing::gpu_args;
using ::testing::HasSubstr;
using testing::input_error;
using testing::kineto_event;
using testing::kineto_trace;
using testing::kSmallLaunch;
using testing::TemporaryFolder;

Trace import_text(const std::string& text) {
  const TemporaryFolder folder;
  return import_kineto({folder.write("trace.json", text)});
}

// Whole microseconds, categories of 2021, events at top level, External id for the correlation.
TEST(KinetoImport, ReadsOldFiles) {
  const Trace trace = import_text(
      fmt::format("[{},{},{}]", kineto_event("Operator", "aten::add", 5, "100", "40"),
                  kineto_event("Runtime", "cudaLaunchKernel", 5, "110", "5", R"("External id":9)"),
                  kineto_event("Kernel", "add_kernel", 7, "130", "20", R"("External id":9,"device":0,"stream":7)")));
  ASSERT_EQ(trace.ranks.size(), 1u);
  ASSERT_EQ(trace.ranks[0].ops.size(), 1u);
  const TraceOp& op = trace.ranks[0].ops[0];
  EXPECT_EQ(op.kind, TraceOpKind::kernel);
  EXPECT_EQ(op.op, "aten::add");
  EXPECT_EQ(op.stream, 7u);
  EXPECT_EQ(op.issued, microseconds(10));
  EXPECT_EQ(op.issue_duration, microseconds(5));
  EXPECT_EQ(op.start, microseconds(30));
  EXPECT_EQ(op.duration, microseconds(20));
  EXPECT_FALSE(op.shape.has_value());
  ASSERT_EQ(trace.ranks[0].iterations.size(), 1u);
  EXPECT_EQ(op.iteration, 0u);
}

// Steps and the optimizer were operators then, and the GPU's properties had another name.
TEST(KinetoImport, FindsStepsAmongOldOperators) {
  const Trace trace = import_text(
      kineto_trace({kineto_event("Operator", "ProfilerStep#3", 5, "100", "90"),
                    kineto_event("Operator", "Optimizer.step#SGD.step", 5, "105", "40"),
                    kineto_event("Runtime", "cudaLaunchKernel", 5, "110", "5", R"("External id":9)"),
                    kineto_event("Kernel", "add_kernel", 7, "130", "20", R"("External id":9,"device":0,"stream":7)")},
                   R"("computeProperties":[{"id":0,"name":"V100","multiProcessorCount":80}],)"));
  ASSERT_EQ(trace.ranks.at(0).ops.size(), 1u);
  EXPECT_EQ(trace.ranks[0].ops[0].phase, TrainingPhase::optimizer);
  EXPECT_EQ(trace.ranks[0].iterations.at(0).name, "ProfilerStep#3");
  EXPECT_EQ(trace.ranks[0].compute_units, 80u);
}

// Microseconds with fractions after a base, steps, annotations, collective arguments, device properties.
std::vector<std::string> new_events() {
  const std::string collective =
      std::string(kSmallLaunch) +
      R"(,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,"dtype":"BFloat16",)"
      R"("Process Group Name":"0","Process Group Ranks":"[0, 1]")";
  return {
      kineto_event("user_annotation", "ProfilerStep#3", 1, "4458676522600.000", "100.000"),
      kineto_event("user_annotation", "ProfilerStep#4", 1, "4458676522700.000", "100.000"),
      kineto_event("user_annotation", "DistributedDataParallel.forward", 1, "4458676522601.000", "20.000"),
      kineto_event("cpu_op", "aten::conv2d", 1, "4458676522602.000", "10.000", R"("Sequence number":1)"),
      kineto_event("cpu_op", "aten::cudnn_convolution", 1, "4458676522603.000", "8.000"),
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "4458676522604.125", "2.000", correlation(1)),
      kineto_event("kernel", "conv", 7, "4458676522610.250", "30.5", gpu_args(7, 1, kSmallLaunch)),
      kineto_event("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", 2, "4458676522630.000",
                   "40.000"),
      kineto_event("cpu_op", "ConvolutionBackward0", 2, "4458676522631.000", "10.000"),
      kineto_event("cuda_driver", "cuLaunchKernel", 2, "4458676522632.000", "1.000", correlation(2)),
      kineto_event("kernel", "conv_backward", 7, "4458676522641.000", "5.000", gpu_args(7, 2, kSmallLaunch)),
      kineto_event("cpu_op", "record_param_comms", 2, "4458676522650.000", "9.000"),
      kineto_event("cuda_runtime", "cudaLaunchKernelExC", 2, "4458676522652.000", "1.000", correlation(3)),
      kineto_event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(x)", 40, "4458676522655.000", "20.000",
                   gpu_args(40, 3, collective)),
      kineto_event("user_annotation", "Optimizer.step#SGD.step", 1, "4458676522710.000", "20.000"),
      kineto_event("cuda_runtime", "cudaMemsetAsync", 1, "4458676522711.000", "1.000", correlation(4)),
      kineto_event("gpu_memset", "Memset (Device)", 7, "4458676522715.000", "1.000", gpu_args(7, 4, R"("bytes":512)")),
      kineto_event("python_function", "train.py(3): step", 1, "4458676522600.000", "100.000"),
  };
}
const char* const kNewHead =
    R"("baseTimeNanoseconds":1711964646000000000,"deviceProperties":[{"id":0,"name":"A100","totalGlobalMem":42297524224,)"
    R"("numSms":108}],"distributedInfo":{"backend":"nccl","rank":1,"world_size":2},)";

TEST(KinetoImport, ReadsNewFiles) {
  const Trace trace = import_text(kineto_trace(new_events(), kNewHead));
  EXPECT_EQ(trace.world_size, 2u);
  ASSERT_EQ(trace.ranks.size(), 1u);
  const TraceRank& rank = trace.ranks[0];
  EXPECT_EQ(rank.rank, 1u);
  EXPECT_EQ(rank.device, "A100");
  EXPECT_EQ(rank.compute_units, 108u);
  EXPECT_EQ(rank.memory_bytes, 42'297'524'224);
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[1].start, microseconds(100));
  ASSERT_EQ(rank.ops.size(), 4u);
  EXPECT_EQ(rank.ops[0].issued, nanoseconds(4125));
  EXPECT_EQ(rank.ops[0].duration, nanoseconds(30500));
  EXPECT_EQ(rank.ops[0].shape, (LaunchShape{{64, 2, 1}, {128, 1, 1}, 32, 1024}));
  EXPECT_EQ(rank.ops[3].kind, TraceOpKind::memset);
  EXPECT_EQ(rank.ops[3].bytes, Bytes(512));
  EXPECT_EQ(rank.ops[3].iteration, 1u);
}

TEST(KinetoImport, FindsPhaseAndOperatorAroundTheLaunch) {
  const Trace trace = import_text(kineto_trace(new_events(), kNewHead));
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  EXPECT_EQ(ops[0].op, "aten::conv2d");
  EXPECT_EQ(ops[0].phase, TrainingPhase::forward);
  EXPECT_EQ(ops[1].op, "ConvolutionBackward0");
  EXPECT_EQ(ops[1].phase, TrainingPhase::backward);
  EXPECT_EQ(ops[2].phase, TrainingPhase::backward);
  EXPECT_EQ(ops[3].phase, TrainingPhase::optimizer);
}

TEST(KinetoImport, TakesSizesFromTheInnermostOperatorThatHasThem) {
  const Trace trace = import_text(kineto_trace({
      kineto_event("cpu_op", "aten::linear", 1, "100.0", "20.0", R"("Input Dims":[[8,64],[32,64],[]])"),
      kineto_event("cpu_op", "aten::addmm", 1, "101.0", "18.0",
                   R"("Input Dims":[[32],[8,64],[64,32],[]],"Input type":["c10::Half","c10::Half","float","Scalar"])"),
      kineto_event("cpu_op", "aten::detach", 1, "102.0", "10.0", R"("Input Dims":[[]])"),
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "103.0", "2.0", correlation(1)),
      kineto_event("kernel", "gemm", 7, "110.0", "5.0", gpu_args(7, 1, kSmallLaunch)),
      kineto_event("cpu_op", "aten::cat", 1, "130.0", "20.0", R"("Input Dims":[[[4,2],[6,2]],[]])"),
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "133.0", "2.0", correlation(2)),
      kineto_event("kernel", "cat", 7, "140.0", "5.0", gpu_args(7, 2, kSmallLaunch)),
      kineto_event("cpu_op", "aten::add", 1, "160.0", "20.0", R"("Input Dims":[[4,"x"],[-2]])"),
      kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "163.0", "2.0", correlation(3)),
      kineto_event("kernel", "add", 7, "170.0", "5.0", gpu_args(7, 3, kSmallLaunch)),
  }));
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_NE(ops[0].launched_by, nullptr);
  ASSERT_NE(ops[1].launched_by, nullptr);
  EXPECT_EQ(*ops[0].launched_by, (OperatorCall{"aten::addmm", {{2, {32}}, {2, {8, 64}}, {4, {64, 32}}, {0, {}}}}));
  EXPECT_EQ(*ops[1].launched_by, (OperatorCall{"aten::cat", {{0, {4, 2}}, {0, {6, 2}}, {0, {}}}}));
  EXPECT_EQ(ops[2].launched_by, nullptr);
}

TEST(KinetoImport, ReadsCollectiveArguments) {
  const Trace trace = import_text(kineto_trace(new_events(), kNewHead));
  const TraceOp& op = trace.ranks[0].ops[2];
  ASSERT_EQ(op.kind, TraceOpKind::collective);
  EXPECT_EQ(op.collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(op.collective->elements, 1000);
  EXPECT_EQ(op.collective->type, DataType::bf16);
  EXPECT_EQ(op.collective->group_size, 2u);
  EXPECT_THAT(op.collective->group_ranks, ElementsAre(0, 1));
  EXPECT_EQ(op.collective->group_name, "0");
}

// ROCm: text arguments, the grid on the call and for module launches in work items, generic collective kernels.
TEST(KinetoImport, ReadsAmdFiles) {
  const std::string launch = R"("correlation":1,"grid":[65536,1,1],"block":[256,1,1],"shared memory":0)";
  const std::string blocks = R"("correlation":2,"grid":[40,1,1],"block":[256,1,1],"shared memory":0)";
  std::vector<std::string> events = {
      kineto_event("cuda_runtime", "hipExtModuleLaunchKernel", 1, "100.5", "2.0", launch),
      kineto_event("kernel", "igemm", 0, "110.5", "5.0",
                   R"("device":2,"stream":0,"correlation":1,"kind":"Dispatch Kernel")"),
      kineto_event("hip", "hipLaunchKernel", 1, "104.5", "2.0", blocks),
      kineto_event("kernel", "cat", 0, "116.5", "5.0", R"("device":2,"stream":0,"correlation":2)"),
      kineto_event("cuda_runtime", "hipMemcpyWithStream", 1, "120.0", "30.0",
                   R"("correlation":3,"size":"2560","kind":"1","stream":"0x0")"),
      kineto_event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 0, "130.0", "15.0",
                   R"("device":2,"stream":0,"correlation":3,"kind":"HtoD")"),
      kineto_event("user_annotation", "nccl:all_reduce", 1, "150.0", "20.0",
                   R"("Input Dims":[[64]],"Input type":["c10::BFloat16"])"),
      kineto_event("cuda_runtime", "hipExtLaunchKernel", 1, "155.0", "2.0", correlation(4)),
      kineto_event("kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 4, "160.0", "9.0",
                   R"("device":2,"stream":4,"correlation":4)")};
  const Trace trace =
      import_text(kineto_trace(events, R"("deviceProperties":[{"id":0,"name":"AMD Instinct MI300X","numSms":304}],)"));
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  EXPECT_EQ(trace.ranks[0].compute_units, 304u);
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_EQ(ops[0].shape->blocks(), 256u);
  EXPECT_EQ(ops[1].shape->blocks(), 40u);
  EXPECT_EQ(ops[2].copy_direction, "HtoD");
  EXPECT_EQ(ops[2].bytes, Bytes(2560));
  EXPECT_EQ(ops[3].kind, TraceOpKind::host_wait);
  EXPECT_THAT(ops[3].waits, ElementsAre(2));
  ASSERT_TRUE(ops[4].collective.has_value());
  EXPECT_EQ(ops[4].collective->kind, CollectiveKind::all_reduce);
  EXPECT_EQ(ops[4].collective->elements, 64);
  EXPECT_EQ(ops[4].collective->type, DataType::bf16);
}

TEST(KinetoImport, LeavesWorkFromBeforeTheRecordingOutsideOfIterations) {
  std::vector<std::string> events = {kineto_event("user_annotation", "ProfilerStep#1", 1, "100", "100"),
                                     kineto_event("kernel", "left over", 7, "120", "5", gpu_args(7, 1)),
                                     kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "110", "2", correlation(2)),
                                     kineto_event("kernel", "of this step", 7, "130", "5", gpu_args(7, 2)),
                                     kineto_event("kernel", "call not recorded", 7, "140", "5", gpu_args(7, 3))};
  const Trace trace = import_text(kineto_trace(events));
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].name, "left over");
  EXPECT_EQ(ops[0].iteration, std::nullopt);
  EXPECT_EQ(ops[0].issued, microseconds(10));  // before what follows it on the stream
  EXPECT_EQ(ops[1].iteration, 0u);
  EXPECT_EQ(ops[2].iteration, 0u);
}

TEST(KinetoImport, LeavesOutStepsWithoutWork) {
  const Trace trace =
      import_text(kineto_trace({kineto_event("user_annotation", "ProfilerStep#1", 1, "100", "100"),
                                kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "110", "2", correlation(2)),
                                kineto_event("kernel", "k", 7, "130", "5", gpu_args(7, 2)),
                                kineto_event("user_annotation", "ProfilerStep#2", 1, "200", "1")}));
  ASSERT_EQ(trace.ranks[0].iterations.size(), 1u);
  EXPECT_EQ(trace.ranks[0].iterations[0].name, "ProfilerStep#1");
}

TEST(KinetoImport, TellsPhasesApartWithoutMarkers) {
  const Trace trace = import_text(
      kineto_trace({kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "100", "2", correlation(1)),
                    kineto_event("kernel", "a", 7, "110", "5", gpu_args(7, 1)),
                    kineto_event("cpu_op", "autograd::engine::evaluate_function: MulBackward0", 2, "120", "10"),
                    kineto_event("cuda_runtime", "cudaLaunchKernel", 2, "122", "2", correlation(2)),
                    kineto_event("kernel", "b", 7, "130", "5", gpu_args(7, 2)),
                    kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "140", "2", correlation(3)),
                    kineto_event("kernel", "c", 7, "150", "5", gpu_args(7, 3))}));
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  EXPECT_EQ(ops[0].phase, TrainingPhase::forward);
  EXPECT_EQ(ops[1].phase, TrainingPhase::backward);
  EXPECT_EQ(ops[2].phase, TrainingPhase::optimizer);
}

TEST(KinetoImport, OrdersRanksByTheirOwnNumber) {
  const TemporaryFolder folder;
  const auto file = [&](int rank) {
    return folder.write(fmt::format("r{}", rank),
                        kineto_trace({kineto_event("kernel", "k", 7, std::to_string(100 + rank), "5", gpu_args(7, 1))},
                                     fmt::format(R"("distributedInfo":{{"rank":{},"world_size":4}},)", rank)));
  };
  const Trace trace = import_kineto({file(2), file(0)});
  EXPECT_EQ(trace.world_size, 4u);
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.ranks[0].rank, 0u);
  EXPECT_EQ(trace.ranks[1].rank, 2u);
  EXPECT_EQ(trace.ranks[1].ops[0].start, microseconds(2));  // one clock for all
  EXPECT_THAT(input_error([&] { (void)import_kineto({file(2), file(2)}); }), HasSubstr("each rank once, got rank 2"));
}

TEST(KinetoImport, ReadsGzipAndZstd) {
  const TemporaryFolder folder;
  for (const char* name : {"t.json.gz", "t.json.zst"}) {
    write_atomically(folder.file(name), kineto_trace(new_events(), kNewHead));
    EXPECT_EQ(import_kineto({folder.file(name)}).ranks[0].ops.size(), 4u) << name;
  }
}

// What the profiler adds around the events, much of it, is passed over.
TEST(KinetoImport, FindsTheEventsAmongOtherKeys) {
  const TemporaryFolder folder;
  const std::string head = R"("stackFrames":{"1":{"name":"}]\\\"","parent":[1,[2]]}},"with_stack":1,"traceName":"t",)";
  const auto file = folder.write("t.json", kineto_trace(new_events(), head + kNewHead));
  EXPECT_EQ(import_kineto({file}).ranks[0].ops.size(), 4u);
}

}  // namespace
}  // namespace weft
