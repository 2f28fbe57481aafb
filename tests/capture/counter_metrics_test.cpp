#include <gmock/gmock.h>

#include "traces/kernel_counters.h"

#ifdef WEFT_CUPTI_LIBRARY
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <dlfcn.h>

#include "traces/capture/inject/counter_metrics.h"
#include "traces/capture/inject/cupti_library.h"

namespace weft::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const CounterMetrics& chosen, KernelCounter counter) {
  std::vector<std::string> out;
  for (const CounterMetric& metric : chosen.metrics)
    if (metric.counter == counter) out.push_back(metric.name);
  return out;
}

TEST(CounterMetrics, TakesTheFirstNameThatTheChipHas) {
  const CounterMetrics chosen = counter_metrics({"dram__bytes_op_read", "dram__bytes_write", "lts__t_sectors_op_read",
                                                 "lts__t_sectors_srcunit_tex_op_read", "lts__t_sectors_op_write"});
  EXPECT_THAT(names(chosen, KernelCounter::hbm_read_bytes), ElementsAre("dram__bytes_op_read.sum"));
  EXPECT_THAT(names(chosen, KernelCounter::l2_read_bytes), ElementsAre("lts__t_sectors_srcunit_tex_op_read.sum"));
  EXPECT_THAT(names(chosen, KernelCounter::l2_written_bytes), ElementsAre("lts__t_sectors_op_write.sum"));
  EXPECT_THAT(chosen.missing, ElementsAre("fp64_ops", "fp32_ops", "fp16_ops"));
}

TEST(CounterMetrics, AMultiplyAddIsTwoOperations) {
  const CounterMetrics chosen = counter_metrics({"smsp__sass_thread_inst_executed_op_fadd_pred_on",
                                                 "smsp__sass_thread_inst_executed_op_ffma_pred_on",
                                                 "smsp__sass_thread_inst_executed_op_fmul_pred_on"});
  ASSERT_EQ(chosen.metrics.size(), 3u);
  for (const CounterMetric& metric : chosen.metrics)
    EXPECT_EQ(metric.scale, metric.name.find("ffma") != std::string::npos ? 2 : 1) << metric.name;
}

TEST(CounterMetrics, CountsNoTensorOperationTwice) {
  const CounterMetrics chosen = counter_metrics(
      {"sm__ops_path_tensor_src_fp16", "sm__ops_path_tensor_src_fp16_dst_fp32", "sm__ops_path_tensor_src_bf16_dst_fp32",
       "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on", "sm__ops_path_tensor_src_tf32_dst_fp32_realtime",
       "sm__ops_path_tensor_src_tf32_dst_fp32", "sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32",
       "sm__ops_path_tensor_src_int1", "sm__ops_path_tensor_op_hmma_src_fp16"});
  EXPECT_THAT(names(chosen, KernelCounter::tensor_fp16_ops),
              ElementsAre("sm__ops_path_tensor_src_bf16_dst_fp32.sum", "sm__ops_path_tensor_src_fp16.sum"));
  EXPECT_THAT(names(chosen, KernelCounter::tensor_tf32_ops), ElementsAre("sm__ops_path_tensor_src_tf32_dst_fp32.sum"));
  EXPECT_THAT(names(chosen, KernelCounter::tensor_8bit_ops),
              ElementsAre("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32.sum"));
  EXPECT_EQ(chosen.metrics.size(), 4u);
}

TEST(TrafficMetrics, AreThoseThatTheChipHas) {
  const TrafficMetrics chosen = traffic_metrics({"nvltx__bytes", "dram__bytes_op_write", "dram__bytes_read"});
  ASSERT_EQ(chosen.metrics.size(), 3u);
  EXPECT_EQ(chosen.metrics[0].name, "dram__bytes_read.sum");
  EXPECT_EQ(chosen.metrics[1].name, "dram__bytes_op_write.sum");
  EXPECT_EQ(chosen.metrics[1].counter, TrafficCounter::hbm_written_bytes);
  EXPECT_EQ(chosen.metrics[2].name, "nvltx__bytes.sum");
  EXPECT_THAT(chosen.missing, ElementsAre("nvlink_received_bytes"));
  EXPECT_EQ(missing_counters("AD102", chosen.missing), "this chip (AD102) has no counters for: nvlink_received_bytes");
}

TEST(CounterKernels, ThatWaitForOtherGpusAreKnownByName) {
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "_Z23ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)",
        "void deep_ep::intranode::dispatch<8, 768>(int4*)", "multimem_all_reduce_kernel", "nvshmemi_barrier"})
    EXPECT_TRUE(waits_for_others(name)) << name;
  for (const char* name :
       {"void at::native::reduce_kernel<512, 1>", "sm90_xmma_gemm_bf16bf16", "void cudnn::bn_fw_tr_1C11",
        "void at::native::vectorized_gather_kernel<16, long>", "softmax_warp_forward", "void splitKreduce_kernel<32>"})
    EXPECT_FALSE(waits_for_others(name)) << name;
}

// CUPTI tells what chips have, and in how many passes it counts, without any of them here.
class ChipMetrics : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "NVIDIA's host library loads with RTLD_DEEPBIND, at which AddressSanitizer ends the program";
#endif
    library_ = dlopen(WEFT_CUPTI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
#define CALL(name, parameters) (reinterpret_cast<decltype(&::name)>(dlsym(library_, #name))(&(parameters)))

  // False where CUPTI has no host library.
  bool open(CUpti_ProfilerType type) {
    auto host = WEFT_PARAMETERS(CUpti_Profiler_Host_Initialize_Params);
    host.profilerType = type;
    host.pChipName = GetParam();
    if (CALL(cuptiProfilerHostInitialize, host) != CUPTI_SUCCESS) return false;
    host_ = host.pHostObject;
    return true;
  }
  std::vector<std::string_view> base_metrics() {
    auto base = WEFT_PARAMETERS(CUpti_Profiler_Host_GetBaseMetrics_Params);
    base.pHostObject = host_;
    base.metricType = CUPTI_METRIC_TYPE_COUNTER;
    EXPECT_EQ(CALL(cuptiProfilerHostGetBaseMetrics, base), CUPTI_SUCCESS);
    return {base.ppMetricNames, base.ppMetricNames + base.numMetrics};
  }
  std::size_t passes(std::vector<const char*> metrics) {
    auto add = WEFT_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
    add.pHostObject = host_;
    add.ppMetricNames = metrics.data();
    add.numMetrics = metrics.size();
    EXPECT_EQ(CALL(cuptiProfilerHostConfigAddMetrics, add), CUPTI_SUCCESS);
    auto size = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params);
    size.pHostObject = host_;
    EXPECT_EQ(CALL(cuptiProfilerHostGetConfigImageSize, size), CUPTI_SUCCESS);
    std::vector<std::uint8_t> image(size.configImageSize);
    auto config = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params);
    config.pHostObject = host_;
    config.configImageSize = image.size();
    config.pConfigImage = image.data();
    EXPECT_EQ(CALL(cuptiProfilerHostGetConfigImage, config), CUPTI_SUCCESS);
    auto passes = WEFT_PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params);
    passes.configImageSize = image.size();
    passes.pConfigImage = image.data();
    EXPECT_EQ(CALL(cuptiProfilerHostGetNumOfPasses, passes), CUPTI_SUCCESS);
    return passes.numOfPasses;
  }
#undef CALL

  void* library_ = nullptr;
  CUpti_Profiler_Host_Object* host_ = nullptr;
};

TEST_P(ChipMetrics, CountKernelsInFewPasses) {
  if (!open(CUPTI_PROFILER_TYPE_RANGE_PROFILER)) GTEST_SKIP() << "CUPTI without its host library";
  const CounterMetrics chosen = counter_metrics(base_metrics());
  EXPECT_THAT(chosen.missing, IsEmpty());
  EXPECT_FALSE(names(chosen, KernelCounter::tensor_fp16_ops).empty());
  std::vector<const char*> metrics;
  for (const CounterMetric& metric : chosen.metrics) metrics.push_back(metric.name.c_str());
  const std::size_t number = passes(metrics);
  EXPECT_LE(number, 12u);
  RecordProperty("passes", static_cast<int>(number));
}

// More than one pass cannot be sampled. AD102 and GB202 have no NVLink.
TEST_P(ChipMetrics, SampleTrafficInOnePass) {
  if (!open(CUPTI_PROFILER_TYPE_PM_SAMPLING)) GTEST_SKIP() << "CUPTI without its host library";
  const TrafficMetrics chosen = traffic_metrics(base_metrics());
  const std::string_view chip = GetParam();
  if (chip == "AD102" || chip == "GB202")
    EXPECT_THAT(chosen.missing, ElementsAre("nvlink_received_bytes", "nvlink_sent_bytes"));
  else
    EXPECT_THAT(chosen.missing, IsEmpty());
  std::vector<const char*> metrics;
  for (const TrafficMetric& metric : chosen.metrics) metrics.push_back(metric.name.c_str());
  EXPECT_EQ(passes(metrics), 1u);
}

INSTANTIATE_TEST_SUITE_P(, ChipMetrics, ::testing::Values("TU102", "GA100", "AD102", "GH100", "GB100", "GB202"));

}  // namespace
}  // namespace weft::capture
#endif
