// PM sampling of the tests' CUPTI: 30 samples of half a millisecond from the start of the fake's kernels, 10 at most
// until it is stopped, the others behind. FAKE_CUPTI: "no-counters", the user may not; "sampling-busy", another
// profiler does; "overflow", the first buffer is full; "image-full", an image holds less than there is; "undecodable",
// it fails later. Built with FAKE_WITHOUT_PM_SAMPLING it stands for a CUPTI before CUDA 12.6, which has none of this.
#include <cupti.h>
#include <cupti_pmsampling.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/capture/fake_cupti.h"

namespace {

constexpr std::uint64_t kStart = 1'700'000'000'000'000'000, kInterval = 500'000;
constexpr std::size_t kSamples = 30, kDecodedAtOnce = 10, kImageBytes = 128;

std::atomic<bool> started;
[[maybe_unused]] bool enabled, configured, initialized, stopped;
[[maybe_unused]] int overflows;
std::size_t decoded;                // of kSamples
std::vector<std::size_t> in_image;  // kSamples: of no length, as those behind a stop

}  // namespace

bool fake_sampling_is_on() { return started; }

double fake_traffic(std::string_view metric, std::size_t sample) {
  const auto number = static_cast<double>(in_image.at(sample));
  if (metric == "dram__bytes_read.sum") return 1e6 + number;
  if (metric == "dram__bytes_write.sum") return 5e5;
  if (metric == "nvlrx__bytes.sum") return 2e5;
  return metric == "nvltx__bytes.sum" ? 1e5 + 10 * number : -1;
}

#ifndef FAKE_WITHOUT_PM_SAMPLING
namespace {

// All from one thread: nothing says that CUPTI may be called by several.
template <class Parameters>
bool called_well(const Parameters* parameters, std::size_t bytes) {
  static const std::thread::id thread = std::this_thread::get_id();
  return thread == std::this_thread::get_id() && parameters->structSize == bytes && parameters->pPriv == nullptr;
}
#define CALLED_WELL(type, parameters) \
  if (!called_well(parameters, type##_STRUCT_SIZE)) return CUPTI_ERROR_INVALID_PARAMETER

CUptiResult fails(CUptiResult result) {
  fake_sampling_settled();
  return result;
}

}  // namespace

extern "C" {

CUptiResult cuptiPmSamplingGetCounterAvailability(CUpti_PmSampling_GetCounterAvailability_Params* p) {
  CALLED_WELL(CUpti_PmSampling_GetCounterAvailability_Params, p);
  if (asked_to("no-counters")) return fails(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  p->counterAvailabilityImageSize = 16;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* p) {
  CALLED_WELL(CUpti_PmSampling_Enable_Params, p);
  if (asked_to("sampling-busy")) return fails(CUPTI_ERROR_HARDWARE_BUSY);
  if (enabled || p->deviceIndex != 0) return fails(CUPTI_ERROR_INVALID_OPERATION);
  enabled = true;
  p->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(4);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* p) {
  CALLED_WELL(CUpti_PmSampling_SetConfig_Params, p);
  if ((p->triggerMode == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL) != asked_to("cycles"))
    return fails(CUPTI_ERROR_NOT_SUPPORTED);
  configured = enabled && !started && p->configSize == 8 && p->samplingInterval > 0 && p->hardwareBufferSize > 0 &&
               p->hwBufferAppendMode == CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  return configured ? CUPTI_SUCCESS : fails(CUPTI_ERROR_INVALID_OPERATION);
}
CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* p) {
  CALLED_WELL(CUpti_PmSampling_GetCounterDataSize_Params, p);
  p->counterDataSize = kImageBytes;
  return enabled && p->numMetrics > 0 && p->maxSamples >= kSamples ? CUPTI_SUCCESS
                                                                   : fails(CUPTI_ERROR_INVALID_PARAMETER);
}
CUptiResult cuptiPmSamplingCounterDataImageInitialize(CUpti_PmSampling_CounterDataImage_Initialize_Params* p) {
  CALLED_WELL(CUpti_PmSampling_CounterDataImage_Initialize_Params, p);
  in_image.clear();
  initialized = p->counterDataSize == kImageBytes;
  return initialized ? CUPTI_SUCCESS : fails(CUPTI_ERROR_INVALID_PARAMETER);
}
CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params* p) {
  CALLED_WELL(CUpti_PmSampling_Start_Params, p);
  if (!configured || !initialized || started) return fails(CUPTI_ERROR_INVALID_OPERATION);
  started = true;
  stopped = false;
  fake_sampling_settled();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params* p) {
  CALLED_WELL(CUpti_PmSampling_Stop_Params, p);
  if (!started) return CUPTI_ERROR_INVALID_OPERATION;
  started = configured = false;
  stopped = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* p) {
  CALLED_WELL(CUpti_PmSampling_DecodeData_Params, p);
  if (!enabled || p->counterDataImageSize != kImageBytes || !in_image.empty()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (asked_to("undecodable")) return CUPTI_ERROR_UNKNOWN;
  if (asked_to("overflow") && overflows++ == 0) {
    p->overflow = 1;
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  const std::size_t end = stopped ? kSamples : kDecodedAtOnce;
  p->decodeStopReason = asked_to("image-full") && decoded == 0 ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                                               : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
  for (; decoded < end; ++decoded) in_image.push_back(decoded);
  if (stopped) in_image.push_back(kSamples);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* p) {
  CALLED_WELL(CUpti_PmSampling_GetCounterDataInfo_Params, p);
  p->numCompletedSamples = p->numPopulatedSamples = in_image.size();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingCounterDataGetSampleInfo(CUpti_PmSampling_CounterData_GetSampleInfo_Params* p) {
  CALLED_WELL(CUpti_PmSampling_CounterData_GetSampleInfo_Params, p);
  const std::size_t sample = in_image.at(p->sampleIndex);
  p->startTimestamp = sample == 0 ? 0 : kStart + sample * kInterval;  // CUPTI does not know when the first began
  p->endTimestamp = sample == kSamples ? p->startTimestamp : kStart + (sample + 1) * kInterval;
  return CUPTI_SUCCESS;
}
}
#endif
