// The range profiler of the tests' CUPTI. FAKE_CUPTI: "no-counters", the user may not use them; "old-chip", one whose
// L2 and tensor pipe have no counters; "flaky", every other start fails; "own-kernels", the driver launches some, too;
// "no-sampling", a chip without PM sampling; "cycles", one that samples by cycles only; "few-samples", one where NVLink
// cannot be sampled.
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/capture/fake_cupti.h"

namespace {

struct Range {
  std::string kernel;
  std::uint64_t number;  // of all that were measured
};
std::vector<Range> ranges;
std::uint64_t measured;
bool enabled, initialized, configured, started;
std::uint64_t starts;

template <class Parameters>
bool sized(const Parameters* parameters, std::size_t bytes) {
  return parameters->structSize == bytes && parameters->pPriv == nullptr;
}
#define SIZED(type, parameters) \
  if (!sized(parameters, type##_STRUCT_SIZE)) return CUPTI_ERROR_INVALID_PARAMETER

double value_of(std::string_view metric, const Range& range) {
  const bool product = range.kernel.find("gemm") != std::string::npos;
  const auto number = static_cast<double>(range.number);
  if (metric == "dram__bytes_read.sum") return 1e6 + number;
  if (metric == "dram__bytes_write.sum") return 2e5;
  if (metric == "lts__t_sectors_srcnode_gpc_op_read.sum") return product ? 1e5 : 2e5;
  if (metric == "lts__t_sectors_srcnode_gpc_op_write.sum") return 1e4;
  if (metric == "sm__ops_path_tensor_src_bf16_dst_fp32.sum") return product ? 4e6 : 0;
  if (metric.find("_ffma_") != std::string_view::npos) return product ? 100 : 3e6;
  return metric.find("_fadd_") != std::string_view::npos ? 5 : 0;
}

}  // namespace

void fake_kernel_runs(const char* name) {
  if (!started) return;
  if (std::string_view(name).find("nccl") != std::string_view::npos) {
    std::puts("a collective was replayed");
    std::exit(9);
  }
  ranges.push_back({name, measured++});
}

extern "C" {

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* p) {
  SIZED(CUpti_Profiler_Initialize_Params, p);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* p) {
  SIZED(CUpti_Profiler_DeviceSupported_Params, p);
  p->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  if (p->api == CUPTI_PROFILER_PM_SAMPLING && asked_to("no-sampling")) {
    p->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    fake_sampling_settled();
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  SIZED(CUpti_Device_GetChipName_Params, p);
  p->pChipName = asked_to("cycles") ? "GA100" : "FAKE100";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  SIZED(CUpti_Profiler_Host_Initialize_Params, p);
  const bool ranges = p->profilerType == CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(ranges ? kRangeHost : kSamplingHost);
  return ranges || (p->profilerType == CUPTI_PROFILER_TYPE_PM_SAMPLING && p->pCounterAvailabilityImage != nullptr)
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params*) { return CUPTI_SUCCESS; }
CUptiResult cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* p) {
  SIZED(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
  static std::array names{"dram__bytes_read",
                          "dram__bytes_write",
                          "smsp__sass_thread_inst_executed_op_fadd_pred_on",
                          "smsp__sass_thread_inst_executed_op_fmul_pred_on",
                          "smsp__sass_thread_inst_executed_op_ffma_pred_on",
                          "lts__t_sectors_srcnode_gpc_op_read",
                          "lts__t_sectors_srcnode_gpc_op_write",
                          "sm__ops_path_tensor_src_bf16_dst_fp32",
                          "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on",
                          "nvlrx__bytes",
                          "nvltx__bytes"};
  p->ppMetricNames = names.data();
  p->numMetrics = asked_to("old-chip") ? 5 : names.size();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
  SIZED(CUpti_Profiler_Host_ConfigAddMetrics_Params, p);
  const auto sampled = [](std::string_view name) { return !asked_to("few-samples") || !name.starts_with("nvl"); };
  if (reinterpret_cast<std::uintptr_t>(p->pHostObject) == kSamplingHost &&
      !std::all_of(p->ppMetricNames, p->ppMetricNames + p->numMetrics, sampled))
    return CUPTI_ERROR_UNKNOWN;
  return p->numMetrics > 0 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_METRIC_NAME;
}
CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  SIZED(CUpti_Profiler_Host_GetConfigImageSize_Params, p);
  p->configImageSize = 8;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
  SIZED(CUpti_Profiler_Host_GetConfigImage_Params, p);
  return p->configImageSize == 8 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  SIZED(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
  for (std::size_t i = 0; i < p->numMetrics; ++i)
    p->pMetricValues[i] = reinterpret_cast<std::uintptr_t>(p->pHostObject) == kSamplingHost
                              ? fake_traffic(p->ppMetricNames[i], p->rangeIndex)
                              : value_of(p->ppMetricNames[i], ranges.at(p->rangeIndex));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
  SIZED(CUpti_RangeProfiler_Enable_Params, p);
  if (asked_to("no-counters")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  enabled = true;
  p->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(2);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params*) { return CUPTI_SUCCESS; }
CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
  SIZED(CUpti_RangeProfiler_GetCounterDataSize_Params, p);
  p->counterDataSize = 64;
  return enabled ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}
CUptiResult cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params* p) {
  SIZED(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, p);
  ranges.clear();
  initialized = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* p) {
  SIZED(CUpti_RangeProfiler_SetConfig_Params, p);
  configured = initialized && p->range == CUPTI_AutoRange && p->replayMode == CUPTI_KernelReplay &&
               p->configSize == 8 && p->counterDataImageSize == 64 && p->numNestingLevels == 1;
  return configured ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* p) {
  SIZED(CUpti_RangeProfiler_Start_Params, p);
  if (!configured || started) return CUPTI_ERROR_INVALID_OPERATION;
  if (starts++ % 2 == 1 && asked_to("flaky")) return CUPTI_ERROR_UNKNOWN;
  started = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* p) {
  SIZED(CUpti_RangeProfiler_Stop_Params, p);
  if (!started) return CUPTI_ERROR_INVALID_OPERATION;
  started = configured = initialized = false;
  // The driver's own kernels come behind, and are not what is asked for.
  if (asked_to("own-kernels")) ranges.insert(ranges.begin(), {"the driver's own", 1'000'000});
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* p) {
  SIZED(CUpti_RangeProfiler_DecodeData_Params, p);
  return started ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* p) {
  SIZED(CUpti_RangeProfiler_GetCounterDataInfo_Params, p);
  p->numTotalRanges = ranges.size();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* p) {
  SIZED(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, p);
  static std::string name;
  name = std::to_string(ranges.at(p->rangeIndex).number);
  p->rangeName = name.c_str();
  return CUPTI_SUCCESS;
}
}
