#include "bench/gpu/device/nvml.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/gpu/device/shared_library.h"

namespace weft::gpu_probe {
namespace {

constexpr int kClockSm = 1, kClockMemory = 2;

}  // namespace

Nvml::Nvml(const std::vector<std::filesystem::path>& libraries, const char* pci_bus) {
  try {
    const SharedLibrary library(libraries, "libnvidia-ml.so.1");
    int (*init)() = nullptr;
    int (*by_bus)(const char*, void**) = nullptr;
    library.find(init, "nvmlInit_v2");
    library.find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    library.find(clock_, "nvmlDeviceGetClockInfo");
    library.find(power_, "nvmlDeviceGetPowerUsage");
    find_reasons(library);
    library.find(temperature_, "nvmlDeviceGetTemperature");
    library.find(driver_, "nvmlSystemGetDriverVersion");
    const int failed = init();
    if (failed != 0) throw MissingLibrary("nvmlInit_v2 failed with " + std::to_string(failed));
    if (by_bus(pci_bus, &device_) != 0) device_ = nullptr;
  } catch (const MissingLibrary& missing) {
    device_ = nullptr;
    std::fprintf(stderr, "no clocks and power from NVML: %s\n", missing.what());
  }
}

// It was renamed; which of the names a driver has depends on its age.
void Nvml::find_reasons(const SharedLibrary& library) {
  try {
    library.find(reasons_, "nvmlDeviceGetCurrentClocksEventReasons");
  } catch (const MissingLibrary&) {
    library.find(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return device_ != nullptr && driver_(text, sizeof(text)) == 0 ? text : "";
}

nlohmann::json Nvml::now() const {
  nlohmann::json out = nlohmann::json::object();
  if (device_ == nullptr) return out;
  unsigned value = 0;
  unsigned long long bits = 0;
  if (clock_(device_, kClockSm, &value) == 0) out["nvml_sm_clock_MHz"] = value;
  if (clock_(device_, kClockMemory, &value) == 0) out["nvml_memory_clock_MHz"] = value;
  if (power_(device_, &value) == 0) out["power_W"] = value / 1000.0;
  if (temperature_(device_, 0, &value) == 0) out["temperature_C"] = value;
  if (reasons_(device_, &bits) == 0) out["throttle_reasons"] = bits;
  return out;
}

}  // namespace weft::gpu_probe
