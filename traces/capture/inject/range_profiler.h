// CUPTI's range profiler on one CUDA context: counters of kernels, each measured alone.
#pragma once

#include <cupti_range_profiler.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture/inject/counter_metrics.h"
#include "traces/capture/inject/profiler_host.h"
#include "traces/kernel_counters.h"

namespace weft::capture {

// All calls are for one thread at a time. None throws but for lack of memory.
class RangeProfiler {
 public:
  // Takes the context, if nothing fails.
  RangeProfiler(CUcontext context, std::uint32_t device);
  // Gives it back.
  ~RangeProfiler();
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // The first that there was. Some kernels cannot be measured; after several of them in a row nothing is any more.
  [[nodiscard]] const CuptiCheck& error() const { return error_; }
  [[nodiscard]] bool usable() const { return ranges_ != nullptr && failures_ < kMostFailures; }
  // Empty when CUPTI does not know the device.
  [[nodiscard]] const std::string& chip() const { return chip_; }
  [[nodiscard]] const CounterMetrics& metrics() const { return metrics_; }

  // The next kernel in the context is measured, and so are those that follow it, up to stop(). Called before each of
  // them. False: error() says why not.
  bool add_launch();
  // Of each add_launch() since the last stop(), in their order; nullopt for those that CUPTI did not measure.
  [[nodiscard]] std::vector<std::optional<KernelCounters>> stop();
  [[nodiscard]] std::size_t launches() const { return launches_; }
  // stop() must come before the next add_launch().
  [[nodiscard]] bool full() const { return launches_ >= most_launches_; }

 private:
  static constexpr int kMostFailures = 8;
  // The image of results that a start clears takes 2 ms for one launch and 27 for 128 (H200, driver 580); each launch
  // then takes CUPTI some 85 ms, with one pass 75.
  static constexpr std::size_t kMostLaunches = 128;

  bool check(const CuptiCheck& failed);
  bool choose_metrics();
  bool make_counter_data();
  bool clear_counter_data();
  bool start();
  [[nodiscard]] std::vector<std::size_t> ranges_in_order();
  [[nodiscard]] std::optional<KernelCounters> evaluate(std::size_t range);

  CuptiCheck error_;
  int failures_ = 0;  // since the last kernel that was measured
  std::string chip_;
  CounterMetrics metrics_;
  std::optional<ProfilerHost> host_;
  CUpti_RangeProfiler_Object* ranges_ = nullptr;
  std::vector<std::uint8_t> counter_data_;
  std::size_t launches_ = 0, most_launches_ = kMostLaunches;
};

// Whether this CUPTI has the range profiler.
[[nodiscard]] bool has_range_profiler();

}  // namespace weft::capture
