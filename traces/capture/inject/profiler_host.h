// What CUPTI's profilers share: whether a device can be profiled, which metrics its chip has, the image that tells a
// profiler to measure some of them, and their values.
#pragma once

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture/inject/cupti_library.h"

namespace weft::capture {

// A call of CUPTI that failed.
struct CuptiError {
  const char* call = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
};
using CuptiCheck = std::optional<CuptiError>;  // nullopt: nothing failed

[[nodiscard]] inline CuptiCheck checked(const char* call, CUptiResult result) {
  return result == CUPTI_SUCCESS ? CuptiCheck() : CuptiError{call, result};
}

// Whether this CUPTI has what is below.
[[nodiscard]] bool has_profiler_host();

// Starts CUPTI's profilers, and asks whether `api` works on the device and what its chip is called.
[[nodiscard]] CuptiCheck find_chip(std::uint32_t device, CUpti_Profiler_API api, std::string& chip);

// All calls are for one thread at a time. None throws but for lack of memory.
class ProfilerHost {
 public:
  // `availability`: what CUPTI says of the device's counters, or empty. `failed`: why the others must not be called.
  ProfilerHost(CUpti_ProfilerType type, const std::string& chip, const std::vector<std::uint8_t>& availability,
               CuptiCheck& failed);
  ~ProfilerHost();
  ProfilerHost(const ProfilerHost&) = delete;
  ProfilerHost& operator=(const ProfilerHost&) = delete;

  // The counters of the chip, without a rollup ("dram__bytes_read"); valid while this lives.
  [[nodiscard]] CuptiCheck base_metrics(std::vector<std::string_view>& out);
  // Measures these, each with its rollup ("dram__bytes_read.sum"); once.
  [[nodiscard]] CuptiCheck configure(std::vector<std::string> metrics);
  [[nodiscard]] const std::vector<std::uint8_t>& config() const { return config_; }
  // Of configure(), for CUPTI's calls.
  [[nodiscard]] std::vector<const char*>& names() { return names_; }
  // Of all metrics, in one range or sample of a counter data image.
  [[nodiscard]] CuptiCheck evaluate(const std::vector<std::uint8_t>& counter_data, std::size_t index,
                                    std::vector<double>& values);

 private:
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;
  std::vector<std::uint8_t> config_;
};

}  // namespace weft::capture
