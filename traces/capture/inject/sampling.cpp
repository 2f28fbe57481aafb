#include "traces/capture/inject/sampling.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "traces/capture/inject/cupti_library.h"
#include "traces/capture/inject/pm_sampling.h"
#include "traces/capture/inject/session.h"

namespace weft::capture {

namespace {

constexpr const char* kNotSampled = "what its GPUs move over time is not sampled";

constexpr std::uint32_t kMostDevices = 64;  // of one process; a node has 16 at most
std::atomic<std::uint64_t> asked{0};        // a bit a device

// The writer's thread alone.
class Sampler {
 public:
  void write(RecordFile& file, bool last) {
    for (const auto& device : devices_) {
      last ? device->stop(file) : static_cast<void>(device->read(file));
      tell_error(*device, file);
    }
    if (!last) return start_new(file);
    for (const auto& device : devices_) tell_overflows(*device, file);
  }

 private:
  void start_new(RecordFile& file) {
    const std::uint64_t wanted = asked.load() & ~started_;
    started_ |= wanted;
    for (std::uint32_t device = 0; device < kMostDevices; ++device) {
      if ((wanted >> device & 1) == 0) continue;
      devices_.push_back(std::make_unique<PmSampling>(device));
      tell_error(*devices_.back(), file);
      tell_missing(*devices_.back(), file);
    }
  }

  // The GPUs of a process fail for the same reason.
  void tell_error(const PmSampling& device, RecordFile& file) {
    if (!device.error() || error_told_) return;
    error_told_ = true;
    char what[128];
    std::snprintf(what, sizeof(what), "CUPTI does not sample device %u: %s", device.device(), device.error()->call);
    tell_user(failure(what, device.error()->result, kNotSampled).c_str(), file);
  }

  void tell_missing(const PmSampling& device, RecordFile& file) {
    if (device.missing().empty() || missing_told_) return;
    missing_told_ = true;
    tell_user(missing_counters(device.chip(), device.missing()).c_str(), file);
  }

  static void tell_overflows(const PmSampling& device, RecordFile& file) {
    if (device.overflows() == 0) return;
    char message[160];
    std::snprintf(message, sizeof(message),
                  "buffers of PM sampling were full %u times on device %u: there are gaps in what it moved over time",
                  device.overflows(), device.device());
    tell_user(message, file);
  }

  std::uint64_t started_ = 0;
  std::vector<std::unique_ptr<PmSampling>> devices_;
  bool error_told_ = false, missing_told_ = false;
};

}  // namespace

bool sampling_asked() {
  const char* value = std::getenv(kSamplingVariable);
  return value != nullptr && *value != 0;
}

bool can_sample() {
  if (has_pm_sampling()) return true;
  const std::string message =
      std::string("this CUPTI has no PM sampling (cuptiPmSamplingEnable). The program runs on, ") + kNotSampled;
  tell_user(message.c_str());
  return false;
}

void sample_device_of(CUcontext context) {
  std::uint32_t device = 0;
  if (cupti()->cuptiGetDeviceId(context, &device) != CUPTI_SUCCESS || device >= kMostDevices) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((asked.fetch_or(bit) & bit) != 0) return;
  if (Writer* writer = session()) writer->wake();
}

void write_samples(RecordFile& file, bool last) {
  // Not destroyed with the process: CUPTI may have ended by then.
  static auto* sampler = new Sampler();
  try {
    if (sampler != nullptr) sampler->write(file, last);
  } catch (const std::exception& e) {  // no memory
    sampler = nullptr;
    const std::string message = std::string(e.what()) + ". The program runs on, " + kNotSampled;
    tell_user(message.c_str(), file);
  }
}

}  // namespace weft::capture
