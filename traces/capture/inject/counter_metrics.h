// Which of a chip's metrics tell the counters of a kernel (traces/kernel_counters.h) and a GPU's traffic
// (traces/traffic_counter.h), and which kernels are counted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/kernel_counters.h"
#include "traces/traffic_counter.h"

namespace weft::capture {

// A metric is a part of one counter: `scale` times its value.
struct CounterMetric {
  std::string name;  // as the range profiler takes it: "dram__bytes_read.sum"
  KernelCounter counter = KernelCounter::hbm_read_bytes;
  double scale = 1;
};

struct CounterMetrics {
  std::vector<CounterMetric> metrics;
  std::vector<std::string_view> missing;  // counters that the chip has nothing for: bytes, and those of FP32 and FP64
};

// `base_metrics`: the counters that CUPTI lists for the chip, without a rollup ("dram__bytes_read").
[[nodiscard]] CounterMetrics counter_metrics(const std::vector<std::string_view>& base_metrics);

// One metric is one counter.
struct TrafficMetric {
  std::string name;
  TrafficCounter counter = TrafficCounter::hbm_read_bytes;
};

struct TrafficMetrics {
  std::vector<TrafficMetric> metrics;
  std::vector<std::string_view> missing;
};

[[nodiscard]] TrafficMetrics traffic_metrics(const std::vector<std::string_view>& base_metrics);

// For the user: what a chip has nothing for.
[[nodiscard]] std::string missing_counters(const std::string& chip, const std::vector<std::string_view>& missing);

// By its name, mangled or not: it may wait for a kernel of another GPU. Rather one too many than one too few, which
// would hang.
[[nodiscard]] bool waits_for_others(std::string_view kernel_name);

}  // namespace weft::capture
