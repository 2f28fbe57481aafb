// The power of one GPU as it runs: what it does is counted, and its clock set window by window (power_governor.h).
#pragma once

#include <array>
#include <cstdint>

#include "gpu_model/gpu_work.h"
#include "gpu_model/power_governor.h"

namespace weft {

class Gpu;
struct Agent;

class GpuPower {
 public:
  GpuPower(const PowerSpec& spec, const Gpu& gpu);

  [[nodiscard]] std::int64_t window_end() const { return window_end_; }  // tick
  // The GPU's first event at or behind the end of the open window is at `tick`.
  void next_window(Gpu& gpu, std::int64_t tick);
  // A round that an agent begins: its time from when nothing else of the agent is in a pipe.
  void note(Gpu& gpu, const Agent& agent, SubCycle in_pipes);
  [[nodiscard]] Stretch stretch() const { return stretch_; }
  [[nodiscard]] PowerUse use(const Gpu& gpu, Time run_end) const;

 private:
  // In the domain of the units' clock, at the full one.
  struct ClockedTimes {
    SubCycle request_latency, response_latency, poll_wait, l1_latency, l1_line, barrier, unit_request, unit_line,
        unit_store, gpc_line;
  };
  static bool is_unit(const Gpu& gpu, std::uint32_t unit);  // else an engine
  [[nodiscard]] PoweredWork work(const Gpu& gpu) const;
  void set_clock(Gpu& gpu, Stretch stretch);

  PowerGovernor governor_;
  Time window_;
  ClockedTimes full_clock_;
  Stretch stretch_;
  std::array<SubCycle, kSlotCount> slot_time_{};  // of work at the full clock, summed over sub-partitions
  std::int64_t open_ = 0;                         // number of the open window
  std::int64_t window_end_;
};

}  // namespace weft
