#include "traces/capture/inject/range_profiler.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "traces/capture/inject/cupti_library.h"

namespace weft::capture {

namespace {

#define WEFT_RANGE_FUNCTIONS(X)                   \
  X(cuptiProfilerInitialize)                      \
  X(cuptiProfilerDeviceSupported)                 \
  X(cuptiDeviceGetChipName)                       \
  X(cuptiProfilerHostInitialize)                  \
  X(cuptiProfilerHostDeinitialize)                \
  X(cuptiProfilerHostGetBaseMetrics)              \
  X(cuptiProfilerHostConfigAddMetrics)            \
  X(cuptiProfilerHostGetConfigImageSize)          \
  X(cuptiProfilerHostGetConfigImage)              \
  X(cuptiProfilerHostEvaluateToGpuValues)         \
  X(cuptiRangeProfilerEnable)                     \
  X(cuptiRangeProfilerDisable)                    \
  X(cuptiRangeProfilerGetCounterDataSize)         \
  X(cuptiRangeProfilerCounterDataImageInitialize) \
  X(cuptiRangeProfilerSetConfig)                  \
  X(cuptiRangeProfilerStart)                      \
  X(cuptiRangeProfilerStop)                       \
  X(cuptiRangeProfilerDecodeData)                 \
  X(cuptiRangeProfilerGetCounterDataInfo)         \
  X(cuptiRangeProfilerCounterDataGetRangeInfo)

struct Functions {
#define WEFT_MEMBER(name) decltype(&::name) name = nullptr;
  WEFT_RANGE_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
  bool all = false;

  Functions() {
    const Cupti* library = cupti();
    if (library == nullptr) return;
    all = true;
#define WEFT_FIND(name) \
  all = all && (this->name = reinterpret_cast<decltype(&::name)>(::dlsym(library->library, #name)));
    WEFT_RANGE_FUNCTIONS(WEFT_FIND)
#undef WEFT_FIND
  }
};

const Functions& functions() {
  static const Functions found;
  return found;
}

// More than the kernel that is meant: what the driver launches on its own until the profiler is stopped comes behind.
constexpr std::size_t kMostRanges = 16;

}  // namespace

bool has_range_profiler() { return functions().all; }

bool RangeProfiler::check(const char* call, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return true;
  ++failures_;
  if (!error_) error_ = Error{call, result};
  return false;
}
#define WEFT_CHECK_CUPTI(call, parameters) check(#call, functions().call(&(parameters)))

RangeProfiler::RangeProfiler(CUcontext context, std::uint32_t device) {
  auto initialize = WEFT_PARAMETERS(CUpti_Profiler_Initialize_Params);
  if (!WEFT_CHECK_CUPTI(cuptiProfilerInitialize, initialize)) return;
  auto supported = WEFT_PARAMETERS(CUpti_Profiler_DeviceSupported_Params);
  supported.cuDevice = static_cast<CUdevice>(device);
  supported.api = CUPTI_PROFILER_RANGE_PROFILING;
  if (!WEFT_CHECK_CUPTI(cuptiProfilerDeviceSupported, supported)) return;
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) {
    check("cuptiProfilerDeviceSupported", CUPTI_ERROR_NOT_SUPPORTED);
    return;
  }
  auto chip = WEFT_PARAMETERS(CUpti_Device_GetChipName_Params);
  chip.deviceIndex = device;
  if (!WEFT_CHECK_CUPTI(cuptiDeviceGetChipName, chip)) return;
  chip_ = chip.pChipName;
  auto host = WEFT_PARAMETERS(CUpti_Profiler_Host_Initialize_Params);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip_.c_str();
  if (!WEFT_CHECK_CUPTI(cuptiProfilerHostInitialize, host)) return;
  host_ = host.pHostObject;
  if (!choose_metrics() || !make_config()) return;
  auto enable = WEFT_PARAMETERS(CUpti_RangeProfiler_Enable_Params);
  enable.ctx = context;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerEnable, enable)) return;
  ranges_ = enable.pRangeProfilerObject;
  make_counter_data();
}

RangeProfiler::~RangeProfiler() {
  if (ranges_ != nullptr) {
    auto disable = WEFT_PARAMETERS(CUpti_RangeProfiler_Disable_Params);
    disable.pRangeProfilerObject = ranges_;
    functions().cuptiRangeProfilerDisable(&disable);
  }
  if (host_ != nullptr) {
    auto end = WEFT_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params);
    end.pHostObject = host_;
    functions().cuptiProfilerHostDeinitialize(&end);
  }
}

bool RangeProfiler::choose_metrics() {
  auto base = WEFT_PARAMETERS(CUpti_Profiler_Host_GetBaseMetrics_Params);
  base.pHostObject = host_;
  base.metricType = CUPTI_METRIC_TYPE_COUNTER;
  if (!WEFT_CHECK_CUPTI(cuptiProfilerHostGetBaseMetrics, base)) return false;
  metrics_ = counter_metrics({base.ppMetricNames, base.ppMetricNames + base.numMetrics});
  for (const CounterMetric& metric : metrics_.metrics) names_.push_back(metric.name.c_str());
  return !names_.empty() || check("cuptiProfilerHostGetBaseMetrics", CUPTI_ERROR_NOT_SUPPORTED);
}

bool RangeProfiler::make_config() {
  auto add = WEFT_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  auto size = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_;
  if (!WEFT_CHECK_CUPTI(cuptiProfilerHostConfigAddMetrics, add) ||
      !WEFT_CHECK_CUPTI(cuptiProfilerHostGetConfigImageSize, size))
    return false;
  config_.resize(size.configImageSize);
  auto config = WEFT_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params);
  config.pHostObject = host_;
  config.configImageSize = config_.size();
  config.pConfigImage = config_.data();
  return WEFT_CHECK_CUPTI(cuptiProfilerHostGetConfigImage, config);
}

bool RangeProfiler::make_counter_data() {
  auto size = WEFT_PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params);
  size.pRangeProfilerObject = ranges_;
  size.pMetricNames = names_.data();
  size.numMetrics = names_.size();
  size.maxNumOfRanges = kMostRanges;
  size.maxNumRangeTreeNodes = kMostRanges;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerGetCounterDataSize, size)) return false;
  counter_data_.resize(size.counterDataSize);
  return true;
}

bool RangeProfiler::clear_counter_data() {
  auto clear = WEFT_PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
  clear.pRangeProfilerObject = ranges_;
  clear.counterDataSize = counter_data_.size();
  clear.pCounterData = counter_data_.data();
  return WEFT_CHECK_CUPTI(cuptiRangeProfilerCounterDataImageInitialize, clear);
}

bool RangeProfiler::start() {
  if (!usable() || started_ || !clear_counter_data()) return false;
  auto config = WEFT_PARAMETERS(CUpti_RangeProfiler_SetConfig_Params);
  config.pRangeProfilerObject = ranges_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.counterDataImageSize = counter_data_.size();
  config.pCounterDataImage = counter_data_.data();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;
  config.maxRangesPerPass = kMostRanges;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerSetConfig, config)) return false;
  auto start = WEFT_PARAMETERS(CUpti_RangeProfiler_Start_Params);
  start.pRangeProfilerObject = ranges_;
  started_ = WEFT_CHECK_CUPTI(cuptiRangeProfilerStart, start);
  return started_;
}

std::optional<KernelCounters> RangeProfiler::stop() {
  if (!started_) return std::nullopt;
  started_ = false;
  auto stop = WEFT_PARAMETERS(CUpti_RangeProfiler_Stop_Params);
  stop.pRangeProfilerObject = ranges_;
  auto decode = WEFT_PARAMETERS(CUpti_RangeProfiler_DecodeData_Params);
  decode.pRangeProfilerObject = ranges_;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerStop, stop) || !WEFT_CHECK_CUPTI(cuptiRangeProfilerDecodeData, decode))
    return std::nullopt;
  return evaluate();
}

// Automatic ranges have the numbers of their kernels, in the order in which these ran, as names.
std::optional<std::size_t> RangeProfiler::first_range(std::size_t ranges) {
  std::optional<std::size_t> first;
  long least = 0;
  for (std::size_t i = 0; i < ranges; ++i) {
    auto range = WEFT_PARAMETERS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    range.pCounterDataImage = counter_data_.data();
    range.counterDataImageSize = counter_data_.size();
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    if (functions().cuptiRangeProfilerCounterDataGetRangeInfo(&range) != CUPTI_SUCCESS || range.rangeName == nullptr)
      return std::nullopt;
    const long number = std::strtol(range.rangeName, nullptr, 10);
    if (!first || number < least) {
      first = i;
      least = number;
    }
  }
  return first;
}

std::optional<KernelCounters> RangeProfiler::evaluate() {
  auto info = WEFT_PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
  info.pCounterDataImage = counter_data_.data();
  info.counterDataImageSize = counter_data_.size();
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerGetCounterDataInfo, info) || info.numTotalRanges == 0) return std::nullopt;
  const std::optional<std::size_t> range =
      info.numTotalRanges == 1 ? std::optional<std::size_t>(0) : first_range(info.numTotalRanges);
  if (!range) return std::nullopt;
  std::vector<double> values(names_.size());
  auto evaluate = WEFT_PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  evaluate.pHostObject = host_;
  evaluate.pCounterDataImage = counter_data_.data();
  evaluate.counterDataImageSize = counter_data_.size();
  evaluate.rangeIndex = *range;
  evaluate.ppMetricNames = names_.data();
  evaluate.numMetrics = names_.size();
  evaluate.pMetricValues = values.data();
  if (!WEFT_CHECK_CUPTI(cuptiProfilerHostEvaluateToGpuValues, evaluate)) return std::nullopt;

  failures_ = 0;
  // A counter is the sum of its metrics, if all of them were measured.
  std::array<double, kKernelCounterCount> sums{};
  std::array<bool, kKernelCounterCount> there{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto counter = static_cast<std::size_t>(metrics_.metrics[i].counter);
    there[counter] = true;
    sums[counter] += values[i] * metrics_.metrics[i].scale;
  }
  KernelCounters counters;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (there[i] && sums[i] >= 0 && sums[i] <= static_cast<double>(kMostCounted))  // not a number: not measured
      counters.values[i] = std::llround(sums[i]);
  return counters;
}

}  // namespace weft::capture
