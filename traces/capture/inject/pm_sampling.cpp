#include "traces/capture/inject/pm_sampling.h"

#include <cmath>
#include <utility>

namespace weft::capture {

namespace {

#define WEFT_PM_FUNCTIONS(X)                   \
  X(cuptiPmSamplingGetCounterAvailability)     \
  X(cuptiPmSamplingEnable)                     \
  X(cuptiPmSamplingSetConfig)                  \
  X(cuptiPmSamplingGetCounterDataSize)         \
  X(cuptiPmSamplingCounterDataImageInitialize) \
  X(cuptiPmSamplingStart)                      \
  X(cuptiPmSamplingStop)                       \
  X(cuptiPmSamplingDecodeData)                 \
  X(cuptiPmSamplingGetCounterDataInfo)         \
  X(cuptiPmSamplingCounterDataGetSampleInfo)

WEFT_CUPTI_TABLE(WEFT_PM_FUNCTIONS)

// As OpenXLA samples by default: fine enough for the layers of a step of 100 ms, and 2000 samples a second to evaluate.
constexpr std::uint64_t kIntervalNs = 500'000;
// Turing and GA100 count cycles of the system's clock in the place of time (cupti_pmsampling.h). It varies: at A100's
// highest, 1.41 GHz, this is half a millisecond. Samples say when they began and ended.
constexpr std::uint64_t kIntervalCycles = 705'000;
// Two seconds, where the writer reads once a second. What does not fit into the image when it is read is lost.
constexpr std::uint32_t kMostSamples = 4096;
// In the hardware's buffer. CUPTI does not tell; up to 10 KiB were measured on H100 with as many metrics (PyTorch,
// torch/profiler/_cupti/pm_sampling.py).
constexpr std::size_t kHardwareBytes = std::size_t{16} << 10;

bool counts_cycles(std::string_view chip) { return chip.starts_with("TU") || chip == "GA100"; }

}  // namespace

#define WEFT_CHECK_CUPTI(call, parameters) check(checked(#call, functions().call(&(parameters))))

bool has_pm_sampling() { return has_profiler_host() && functions().all; }

bool PmSampling::check(const CuptiCheck& failed) {
  if (failed) error_ = failed;
  return !failed;
}

PmSampling::PmSampling(std::uint32_t device) : device_(device) {
  if (!check(find_chip(device, CUPTI_PROFILER_PM_SAMPLING, chip_)) || !choose_metrics()) return;
  auto enable = WEFT_PARAMETERS(CUpti_PmSampling_Enable_Params);
  enable.deviceIndex = device;
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingEnable, enable)) return;
  sampling_ = enable.pPmSamplingObject;
  if (!set_config() || !make_counter_data() || !start()) sampling_ = nullptr;
}

bool PmSampling::choose_metrics() {
  auto available = WEFT_PARAMETERS(CUpti_PmSampling_GetCounterAvailability_Params);
  available.deviceIndex = device_;
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingGetCounterAvailability, available)) return false;
  std::vector<std::uint8_t> availability(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = availability.data();
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingGetCounterAvailability, available)) return false;
  if (!check(open_host(availability))) return false;
  std::vector<std::string_view> base;
  if (!check(host_->base_metrics(base))) return false;
  metrics_ = traffic_metrics(base);
  const CuptiCheck failed = configure();
  if (!failed) return true;
  leave_out_what_fails(availability);
  return check(metrics_.metrics.empty() ? failed : open_host(availability)) && check(configure());
}

CuptiCheck PmSampling::open_host(const std::vector<std::uint8_t>& availability) {
  CuptiCheck failed;
  host_.emplace(CUPTI_PROFILER_TYPE_PM_SAMPLING, chip_, availability, failed);
  return failed;
}

CuptiCheck PmSampling::configure() {
  std::vector<std::string> names;
  for (const TrafficMetric& metric : metrics_.metrics) names.push_back(metric.name);
  return host_->configure(std::move(names));
}

// The chip has all of them, but this device may not: CUPTI fails without telling for which.
void PmSampling::leave_out_what_fails(const std::vector<std::uint8_t>& availability) {
  std::erase_if(metrics_.metrics, [&](const TrafficMetric& metric) {
    const bool fails = open_host(availability) || host_->configure({metric.name});
    if (fails) metrics_.missing.push_back(kTrafficCounterWords[static_cast<std::size_t>(metric.counter)]);
    return fails;
  });
}

bool PmSampling::set_config() {
  auto config = WEFT_PARAMETERS(CUpti_PmSampling_SetConfig_Params);
  config.pPmSamplingObject = sampling_;
  config.configSize = host_->config().size();
  config.pConfig = host_->config().data();
  config.hardwareBufferSize = kMostSamples * kHardwareBytes;
  const bool cycles = counts_cycles(chip_);
  config.samplingInterval = cycles ? kIntervalCycles : kIntervalNs;
  config.triggerMode =
      cycles ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  return WEFT_CHECK_CUPTI(cuptiPmSamplingSetConfig, config);
}

bool PmSampling::make_counter_data() {
  auto size = WEFT_PARAMETERS(CUpti_PmSampling_GetCounterDataSize_Params);
  size.pPmSamplingObject = sampling_;
  size.pMetricNames = host_->names().data();
  size.numMetrics = host_->names().size();
  size.maxSamples = kMostSamples;
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingGetCounterDataSize, size)) return false;
  counter_data_.resize(size.counterDataSize);
  return clear_counter_data();
}

bool PmSampling::clear_counter_data() {
  auto clear = WEFT_PARAMETERS(CUpti_PmSampling_CounterDataImage_Initialize_Params);
  clear.pPmSamplingObject = sampling_;
  clear.counterDataSize = counter_data_.size();
  clear.pCounterData = counter_data_.data();
  return WEFT_CHECK_CUPTI(cuptiPmSamplingCounterDataImageInitialize, clear);
}

bool PmSampling::start() {
  auto start = WEFT_PARAMETERS(CUpti_PmSampling_Start_Params);
  start.pPmSamplingObject = sampling_;
  return WEFT_CHECK_CUPTI(cuptiPmSamplingStart, start);
}

// A hardware buffer that was full says so to every later call, too.
bool PmSampling::restart() {
  auto stop = WEFT_PARAMETERS(CUpti_PmSampling_Stop_Params);
  stop.pPmSamplingObject = sampling_;
  return WEFT_CHECK_CUPTI(cuptiPmSamplingStop, stop) && set_config() && start();
}

bool PmSampling::decode(RecordFile& file, bool& overflow) {
  auto decode = WEFT_PARAMETERS(CUpti_PmSampling_DecodeData_Params);
  decode.pPmSamplingObject = sampling_;
  decode.pCounterDataImage = counter_data_.data();
  decode.counterDataImageSize = counter_data_.size();
  const CUptiResult result = functions().cuptiPmSamplingDecodeData(&decode);
  overflow = result == CUPTI_ERROR_OUT_OF_MEMORY || decode.overflow != 0;
  const bool full = decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
  if (!overflow && !check(checked("cuptiPmSamplingDecodeData", result))) return false;
  overflows_ += overflow || full ? 1 : 0;
  if (result != CUPTI_SUCCESS) return true;
  auto info = WEFT_PARAMETERS(CUpti_PmSampling_GetCounterDataInfo_Params);
  info.pCounterDataImage = counter_data_.data();
  info.counterDataImageSize = counter_data_.size();
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingGetCounterDataInfo, info)) return false;
  for (std::size_t i = 0; i < info.numCompletedSamples; ++i)
    if (!write_sample(i, file)) return false;
  return info.numCompletedSamples == 0 || clear_counter_data();
}

// CUPTI's guide ("PM Sampling"): timestamps are those of the CPU. They pass the callback that start() of
// cupti_session.cpp registers, as those of kernels do (NVIDIA in pytorch/kineto#1526), so they are CLOCK_REALTIME's.
bool PmSampling::write_sample(std::size_t index, RecordFile& file) {
  auto info = WEFT_PARAMETERS(CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  info.pPmSamplingObject = sampling_;
  info.pCounterDataImage = counter_data_.data();
  info.counterDataImageSize = counter_data_.size();
  info.sampleIndex = index;
  if (!WEFT_CHECK_CUPTI(cuptiPmSamplingCounterDataGetSampleInfo, info)) return false;
  // The first sample begins at 0, lost ones are 0 altogether, and those behind the stop have no length.
  if (info.startTimestamp == 0 || info.endTimestamp <= info.startTimestamp) return true;
  if (!check(host_->evaluate(counter_data_, index, values_))) return false;
  TrafficRecord record;
  record.device = device_;
  record.start = info.startTimestamp;
  record.end = info.endTimestamp;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!(values_[i] >= 0 && values_[i] <= static_cast<double>(kMostCounted))) continue;  // not a number: not measured
    const auto counter = static_cast<std::size_t>(metrics_.metrics[i].counter);
    record.known |= 1u << counter;
    record.values[counter] = static_cast<std::uint64_t>(std::llround(values_[i]));
  }
  file.put(record);
  return true;
}

bool PmSampling::read(RecordFile& file) {
  bool overflow = false;
  if (sampling_ != nullptr && (!decode(file, overflow) || (overflow && !restart()))) sampling_ = nullptr;
  return sampling_ != nullptr;
}

void PmSampling::stop(RecordFile& file) {
  if (!read(file)) return;
  auto stop = WEFT_PARAMETERS(CUpti_PmSampling_Stop_Params);
  stop.pPmSamplingObject = sampling_;
  bool overflow = false;  // counted, and nothing is started again
  if (WEFT_CHECK_CUPTI(cuptiPmSamplingStop, stop)) decode(file, overflow);
  sampling_ = nullptr;
}

}  // namespace weft::capture
