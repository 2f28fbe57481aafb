#include "traces/capture/inject/profiler_host.h"

#include <utility>

namespace weft::capture {

namespace {

#define WEFT_HOST_FUNCTIONS(X)           \
  X(cuptiProfilerInitialize)             \
  X(cuptiProfilerDeviceSupported)        \
  X(cuptiDeviceGetChipName)              \
  X(cuptiProfilerHostInitialize)         \
  X(cuptiProfilerHostDeinitialize)       \
  X(cuptiProfilerHostGetBaseMetrics)     \
  X(cuptiProfilerHostConfigAddMetrics)   \
  X(cuptiProfilerHostGetConfigImageSize) \
  X(cuptiProfilerHostGetConfigImage)     \
  X(cuptiProfilerHostEvaluateToGpuValues)

WEFT_CUPTI_TABLE(WEFT_HOST_FUNCTIONS)

}  // namespace

#define WEFT_CALL(call, parameters) checked(#call, functions().call(&(parameters)))

bool has_profiler_host() { return functions().all; }

CuptiCheck find_chip(std::uint32_t device, CUpti_Profiler_API api, std::string& chip) {
  auto initialize = WEFT_PARAMETERS(CUpti_Profiler_Initialize_Params);
  if (const auto error = WEFT_CALL(cuptiProfilerInitialize, initialize)) return error;
  auto supported = WEFT_PARAMETERS(CUpti_Profiler_DeviceSupported_Params);
  supported.cuDevice = static_cast<CUdevice>(device);
  supported.api = api;
  if (const auto error = WEFT_CALL(cuptiProfilerDeviceSupported, supported)) return error;
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
    return CuptiError{"cuptiProfilerDeviceSupported", CUPTI_ERROR_NOT_SUPPORTED};
  auto name = WEFT_PARAMETERS(CUpti_Device_GetChipName_Params);
  name.deviceIndex = device;
  if (const auto error = WEFT_CALL(cuptiDeviceGetChipName, name)) return error;
  chip = name.pChipName;
  return std::nullopt;
}

ProfilerHost::ProfilerHost(CUpti_ProfilerType type, const std::string& chip,
                           const std::vector<std::uint8_t>& availability, CuptiCheck& failed) {
  auto host = WEFT_PARAMETERS(CUpti_Profiler_Host_Initialize_Params);
  host.profilerType = type;
  host.pChipName = chip.c_str();
  host.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
  failed = WEFT_CALL(cuptiProfilerHostInitialize, host);
  host_ = failed ? nullptr : host.pHostObject;
}

ProfilerHost::~ProfilerHost() {
  if (host_ == nullptr) return;
  auto end = WEFT_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params);
  end.pHostObject = host_;
  functions().cuptiProfilerHostDeinitialize(&end);
}

CuptiCheck ProfilerHost::base_metrics(std::vector<std::string_view>& out) {
  auto base = WEFT_PARAMETERS(CUpti_Profiler_Host_GetBaseMetrics_Params);
  base.pHostObject = host_;
  base.metricType = CUPTI_METRIC_TYPE_COUNTER;
  if (const auto error = WEFT_CALL(cuptiProfilerHostGetBaseMetrics, base)) return error;
  out.assign(base.ppMetricNames, base.ppMetricNames + base.numMetrics);
  return std::nullopt;
}

CuptiCheck ProfilerHost::configure(std::vector<std::string> metrics) {
  metrics_ = std::move(metrics);
  for (const std::string& metric : metrics_) names_.push_back(metric.c_str());
  // Of a chip that has none of what is asked for.
  if (names_.empty()) return CuptiError{"cuptiProfilerHostGetBaseMetrics", CUPTI_ERROR_NOT_SUPPORTED};
  auto add = WEFT_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  if (const auto error = WEFT_CALL(cuptiProfilerHostConfigAddMetrics, add)) return error;
  auto size = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_;
  if (const auto error = WEFT_CALL(cuptiProfilerHostGetConfigImageSize, size)) return error;
  config_.resize(size.configImageSize);
  auto config = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params);
  config.pHostObject = host_;
  config.configImageSize = config_.size();
  config.pConfigImage = config_.data();
  return WEFT_CALL(cuptiProfilerHostGetConfigImage, config);
}

CuptiCheck ProfilerHost::evaluate(const std::vector<std::uint8_t>& counter_data, std::size_t index,
                                  std::vector<double>& values) {
  values.resize(names_.size());
  auto evaluate = WEFT_PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  evaluate.pHostObject = host_;
  evaluate.pCounterDataImage = counter_data.data();
  evaluate.counterDataImageSize = counter_data.size();
  evaluate.rangeIndex = index;
  evaluate.ppMetricNames = names_.data();
  evaluate.numMetrics = names_.size();
  evaluate.pMetricValues = values.data();
  return WEFT_CALL(cuptiProfilerHostEvaluateToGpuValues, evaluate);
}

}  // namespace weft::capture
