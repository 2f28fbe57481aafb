// How far a sweep is, from its folder alone: also while processes on other machines work in it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/sweep/manifest.h"
#include "cli/sweep/run_store.h"

namespace weft {

struct SweepStatus {
  std::size_t points = 0;
  // Of points. Equal points share a run.
  std::size_t done = 0, failed = 0, timeout = 0, running = 0, pending = 0;
  double cpu_s = 0;                                          // of runs that are done
  double seconds_left = 0;                                   // at as many runs at a time as now; 0: not known
  std::vector<std::pair<std::size_t, std::string>> reasons;  // by point, of those that failed
};

[[nodiscard]] SweepStatus status_of(const Manifest& manifest, const RunStore& store, std::chrono::seconds stale_after);

// Lines for people; a document for scripts (docs/formats.md).
[[nodiscard]] std::string status_text(const SweepStatus& status);
[[nodiscard]] Json status_json(const SweepStatus& status);

// "45 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace weft
