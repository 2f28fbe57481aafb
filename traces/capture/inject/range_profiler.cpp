#include "traces/capture/inject/range_profiler.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "traces/capture/inject/cupti_library.h"

namespace weft::capture {

namespace {

#define WEFT_RANGE_FUNCTIONS(X)                   \
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

WEFT_CUPTI_TABLE(WEFT_RANGE_FUNCTIONS)

// More than the kernels that are meant: what the driver launches on its own until the profiler is stopped.
constexpr std::size_t kSpareRanges = 16;

}  // namespace

bool has_range_profiler() { return has_profiler_host() && functions().all; }

bool RangeProfiler::check(const CuptiCheck& failed) {
  if (!failed) return true;
  ++failures_;
  if (!error_) error_ = failed;
  return false;
}
#define WEFT_CHECK_CUPTI(call, parameters) check(checked(#call, functions().call(&(parameters))))

RangeProfiler::RangeProfiler(CUcontext context, std::uint32_t device) {
  if (!check(find_chip(device, CUPTI_PROFILER_RANGE_PROFILING, chip_))) return;
  CuptiCheck failed;
  host_.emplace(CUPTI_PROFILER_TYPE_RANGE_PROFILER, chip_, std::vector<std::uint8_t>(), failed);
  if (!check(failed) || !choose_metrics()) return;
  auto enable = WEFT_PARAMETERS(CUpti_RangeProfiler_Enable_Params);
  enable.ctx = context;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerEnable, enable)) return;
  ranges_ = enable.pRangeProfilerObject;
  make_counter_data();
}

RangeProfiler::~RangeProfiler() {
  if (ranges_ == nullptr) return;
  auto disable = WEFT_PARAMETERS(CUpti_RangeProfiler_Disable_Params);
  disable.pRangeProfilerObject = ranges_;
  functions().cuptiRangeProfilerDisable(&disable);
}

bool RangeProfiler::choose_metrics() {
  std::vector<std::string_view> base;
  if (!check(host_->base_metrics(base))) return false;
  metrics_ = counter_metrics(base);
  std::vector<std::string> names;
  for (const CounterMetric& metric : metrics_.metrics) names.push_back(metric.name);
  return check(host_->configure(std::move(names)));
}

bool RangeProfiler::make_counter_data() {
  auto size = WEFT_PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params);
  size.pRangeProfilerObject = ranges_;
  size.pMetricNames = host_->names().data();
  size.numMetrics = host_->names().size();
  size.maxNumOfRanges = kMostLaunches + kSpareRanges;
  size.maxNumRangeTreeNodes = kMostLaunches + kSpareRanges;
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

bool RangeProfiler::add_launch() {
  if (launches_ == 0 && !start()) return false;
  ++launches_;
  return true;
}

bool RangeProfiler::start() {
  if (!usable() || !clear_counter_data()) return false;
  auto config = WEFT_PARAMETERS(CUpti_RangeProfiler_SetConfig_Params);
  config.pRangeProfilerObject = ranges_;
  config.configSize = host_->config().size();
  config.pConfig = host_->config().data();
  config.counterDataImageSize = counter_data_.size();
  config.pCounterDataImage = counter_data_.data();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;
  config.maxRangesPerPass = kMostLaunches + kSpareRanges;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerSetConfig, config)) return false;
  auto start = WEFT_PARAMETERS(CUpti_RangeProfiler_Start_Params);
  start.pRangeProfilerObject = ranges_;
  return WEFT_CHECK_CUPTI(cuptiRangeProfilerStart, start);
}

std::vector<std::optional<KernelCounters>> RangeProfiler::stop() {
  std::vector<std::optional<KernelCounters>> counters(std::exchange(launches_, 0));
  if (counters.empty()) return counters;
  auto stop = WEFT_PARAMETERS(CUpti_RangeProfiler_Stop_Params);
  stop.pRangeProfilerObject = ranges_;
  auto decode = WEFT_PARAMETERS(CUpti_RangeProfiler_DecodeData_Params);
  decode.pRangeProfilerObject = ranges_;
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerStop, stop) || !WEFT_CHECK_CUPTI(cuptiRangeProfilerDecodeData, decode))
    return counters;
  const std::vector<std::size_t> ranges = ranges_in_order();
  // Which ranges are the driver's own nothing tells, but that they come behind the launch that was measured before.
  if (ranges.size() != counters.size()) most_launches_ = 1;
  if (ranges.size() == counters.size() || (counters.size() == 1 && !ranges.empty()))
    for (std::size_t i = 0; i < counters.size(); ++i) counters[i] = evaluate(ranges[i]);
  return counters;
}

// Automatic ranges have the numbers of their kernels, in the order in which these ran, as names.
std::vector<std::size_t> RangeProfiler::ranges_in_order() {
  auto info = WEFT_PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
  info.pCounterDataImage = counter_data_.data();
  info.counterDataImageSize = counter_data_.size();
  if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerGetCounterDataInfo, info)) return {};
  std::vector<std::pair<long, std::size_t>> numbers;
  for (std::size_t i = 0; i < info.numTotalRanges; ++i) {
    auto range = WEFT_PARAMETERS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    range.pCounterDataImage = counter_data_.data();
    range.counterDataImageSize = counter_data_.size();
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    if (!WEFT_CHECK_CUPTI(cuptiRangeProfilerCounterDataGetRangeInfo, range) || range.rangeName == nullptr) return {};
    numbers.emplace_back(std::strtol(range.rangeName, nullptr, 10), i);
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::size_t> ranges;
  for (const auto& [number, index] : numbers) ranges.push_back(index);
  return ranges;
}

std::optional<KernelCounters> RangeProfiler::evaluate(std::size_t range) {
  std::vector<double> values;
  if (!check(host_->evaluate(counter_data_, range, values))) return std::nullopt;

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
