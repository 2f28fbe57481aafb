// What all suites share: the GPU, the file of results, and when to stop.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/plan/options.h"
#include "bench/gpu/plan/result_file.h"

namespace weft::gpu_probe {

struct Session {
  const Options& options;
  Gpu& gpu;
  ResultFile& results;
  std::chrono::steady_clock::time_point deadline;
  const volatile std::sig_atomic_t& interrupted;

  // No time for another measurement, or somebody wants it to end.
  [[nodiscard]] bool is_over() const { return interrupted != 0 || std::chrono::steady_clock::now() >= deadline; }
};

// A section of the results by parts, so that an interrupted run keeps those it has.
inline void measure_part(Session& session, const char* section, const char* part,
                         const std::function<nlohmann::json()>& measure) {
  nlohmann::json parts = *session.results.section(section);
  if (parts.contains(part) || session.is_over()) return;
  parts[part] = measure();
  session.results.set(section, parts);
  session.results.save();
}

void run_describe(Session& session);
void run_units(Session& session);
void run_drain(Session& session);
void run_machine(Session& session);
void run_cache(Session& session);
void run_pairs(Session& session);
void run_launch(Session& session);

}  // namespace weft::gpu_probe
