// The GPU that is measured, its streams, and clocks and power while it is.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/gpu/device/memory.h"

namespace weft::gpu_probe {

class Nvml;

// There is no GPU, or no driver for this CUDA.
class NoGpu : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Gpu {
 public:
  // Takes device 0. Throws NoGpu.
  explicit Gpu(const std::vector<std::filesystem::path>& libraries);
  ~Gpu();

  [[nodiscard]] int units() const { return units_; }
  [[nodiscard]] std::size_t l2_bytes() const { return l2_bytes_; }
  // Lowest and highest priority; none waits for the default stream.
  [[nodiscard]] cudaStream_t compute() const { return compute_; }
  [[nodiscard]] cudaStream_t communication() const { return communication_; }
  // For flags and reports while kernels run on the others.
  [[nodiscard]] cudaStream_t control() const { return control_; }

  // Of the units, over some 100 us on an otherwise unused unit, behind what the compute stream has to do.
  [[nodiscard]] double sm_clock_MHz() const;

  // Name, sizes, driver, clocks: the part of the results that is about the machine.
  [[nodiscard]] nlohmann::json describe() const;
  // Clocks, power and why clocks are held down, as NVML told within the last quarter of a second (asking takes
  // milliseconds, and power is a mean over longer anyway); empty without NVML.
  [[nodiscard]] const nlohmann::json& now();

 private:
  int units_ = 0;
  std::size_t l2_bytes_ = 0;
  cudaStream_t compute_ = nullptr, communication_ = nullptr, control_ = nullptr;
  std::unique_ptr<Nvml> nvml_;
  nlohmann::json told_ = nlohmann::json::object();
  std::chrono::steady_clock::time_point told_at_{};
  std::unique_ptr<PinnedArray<unsigned long long>> clock_sample_;
};

}  // namespace weft::gpu_probe
