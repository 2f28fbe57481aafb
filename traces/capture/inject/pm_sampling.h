// CUPTI's PM sampling of one GPU: what HBM and NVLink moved, over time, beside whatever else is recorded.
#pragma once

#include <cupti_pmsampling.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture/inject/counter_metrics.h"
#include "traces/capture/inject/profiler_host.h"
#include "traces/capture/inject/record_file.h"

namespace weft::capture {

// Whether this CUPTI has it.
[[nodiscard]] bool has_pm_sampling();

// All calls are for one thread. None throws but for lack of memory. Memory: some 64 MiB, and 64 MiB that the hardware
// writes to.
class PmSampling {
 public:
  // Starts it, if nothing fails. It is not given back: CUPTI ends with the process, and in CUDA 12 disabling PM
  // sampling ended all of CUPTI (OpenXLA, cupti_pm_sampler_impl.cc).
  explicit PmSampling(std::uint32_t device);
  PmSampling(const PmSampling&) = delete;
  PmSampling& operator=(const PmSampling&) = delete;

  // Writes what was sampled since the last call as TrafficRecords. False: it failed, and nothing is sampled any more.
  bool read(RecordFile& file);
  // Stops, and writes the rest.
  void stop(RecordFile& file);

  // Of the call that ended it.
  [[nodiscard]] const CuptiCheck& error() const { return error_; }
  [[nodiscard]] std::uint32_t device() const { return device_; }
  [[nodiscard]] const std::string& chip() const { return chip_; }
  [[nodiscard]] const std::vector<std::string_view>& missing() const { return metrics_.missing; }
  // How often samples were lost because a buffer was full.
  [[nodiscard]] std::uint32_t overflows() const { return overflows_; }

 private:
  bool check(const CuptiCheck& failed);
  bool choose_metrics();
  CuptiCheck open_host(const std::vector<std::uint8_t>& availability);
  CuptiCheck configure();
  void leave_out_what_fails(const std::vector<std::uint8_t>& availability);
  bool set_config();
  bool make_counter_data();
  bool clear_counter_data();
  bool start();
  bool decode(RecordFile& file, bool& overflow);
  bool restart();
  bool write_sample(std::size_t index, RecordFile& file);

  std::uint32_t device_;
  CuptiCheck error_;
  std::string chip_;
  TrafficMetrics metrics_;
  std::optional<ProfilerHost> host_;
  CUpti_PmSampling_Object* sampling_ = nullptr;
  std::vector<std::uint8_t> counter_data_;
  std::vector<double> values_;
  std::uint32_t overflows_ = 0;
};

}  // namespace weft::capture
