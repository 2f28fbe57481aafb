// NVML, where it opens: clocks, power, and why clocks are held down. Only questions; it sets nothing.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weft::gpu_probe {

class SharedLibrary;

class Nvml {
 public:
  Nvml(const std::vector<std::filesystem::path>& libraries, const char* pci_bus);
  [[nodiscard]] std::string driver_version() const;
  [[nodiscard]] nlohmann::json now() const;

 private:
  void find_reasons(const SharedLibrary& library);

  // nvml.h, which is not in every toolkit: handles are pointers, results are 0 for success.
  int (*clock_)(void* device, int type, unsigned* MHz) = nullptr;
  int (*power_)(void* device, unsigned* mW) = nullptr;
  int (*reasons_)(void* device, unsigned long long* bits) = nullptr;
  int (*temperature_)(void* device, int sensor, unsigned* celsius) = nullptr;
  int (*driver_)(char* text, unsigned length) = nullptr;
  void* device_ = nullptr;
};

}  // namespace weft::gpu_probe
