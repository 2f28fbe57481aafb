// Power and the clock that it leaves: at the end of each window the highest step of the clock is chosen at which the
// window would have taken no more than the limit, had all work gone as much faster or slower as the clock. Work that
// waits for memory does not, so the limit is then reached over some windows; in between it may be passed, as on real
// GPUs, whose limits are averages.
//
// Energy of work in the units' domain goes with the square of the voltage, that of a unit that only holds blocks also
// with the clock; HBM, links and the idle GPU take theirs at any clock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"

namespace weft {

// What a GPU has done since its run began.
struct PoweredWork {
  double unit_s = 0;                        // compute units that held blocks, summed
  std::array<double, kSlotCount> slot_s{};  // of one sub-partition's slot at the full clock, summed
  std::int64_t l2_bytes = 0, hbm_bytes = 0, link_bytes = 0;
};

struct PowerWindow {
  double mean_W = 0;
  double clock_share = 1;  // of the full clock
};

class PowerGovernor {
 public:
  PowerGovernor(const PowerSpec& spec, const GpuSpec& gpu);

  // A window is over, by which so much had been done, and behind it `idle` ones in which nothing happened.
  void end_window(const PoweredWork& done, std::int64_t idle);
  // Of the full clock, in the window that is open.
  [[nodiscard]] double clock_share() const { return steps_[step_].clock_share; }
  [[nodiscard]] const std::vector<PowerWindow>& windows() const { return windows_; }
  // Joules, of what was done until `seconds` into the window that is open too.
  [[nodiscard]] double joules(const PoweredWork& done, double seconds) const;

 private:
  struct Step {
    double clock_share = 1;
    double voltage_squared = 1;  // of that at the full clock
  };
  struct Joules {
    double core = 0;  // at the clock and voltage that were
    double rest = 0;
  };
  [[nodiscard]] Joules since_window_began(const PoweredWork& done) const;
  [[nodiscard]] std::size_t step_within_limit(const Joules& window) const;

  PowerSpec spec_;
  std::array<double, kSlotCount> slot_W_{};  // of one sub-partition's
  double window_s_;
  std::vector<Step> steps_;  // the full clock first
  std::size_t step_ = 0;
  PoweredWork before_;  // the window that is open
  double joules_ = 0;
  std::vector<PowerWindow> windows_;
};

}  // namespace weft
