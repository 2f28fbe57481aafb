#include "gpu_model/power_governor.h"

#include <tuple>

namespace weft {

static_assert(std::tuple_size_v<decltype(PowerSpec::slots_W)> == kSlotCount);

PowerGovernor::PowerGovernor(const PowerSpec& spec, const GpuSpec& gpu)
    : spec_(spec), window_s_(to_seconds(spec.window)) {
  const double slots = static_cast<double>(gpu.compute_units) * gpu.compute_unit.schedulers;
  for (std::size_t s = 0; s < kSlotCount; ++s) slot_W_[s] = spec.slots_W[s] / slots;
  const auto full = static_cast<double>(gpu.clock.count());
  const double lowest = static_cast<double>(spec.lowest_clock.count()) / full;
  const double down = static_cast<double>(spec.clock_step.count()) / full;
  for (double share = 1; share > lowest; share = 1 - down * static_cast<double>(steps_.size())) {
    const double voltage = 1 - (1 - spec.lowest_voltage) * (1 - share) / (1 - lowest);
    steps_.push_back({share, voltage * voltage});
  }
  steps_.push_back({lowest, lowest < 1 ? spec.lowest_voltage * spec.lowest_voltage : 1});
}

PowerGovernor::Joules PowerGovernor::since_window_began(const PoweredWork& done) const {
  constexpr double kPico = 1e-12;
  const auto bytes = [](std::int64_t now, std::int64_t before, double pJ) {
    return static_cast<double>(now - before) * pJ * kPico;
  };
  const Step& at = steps_[step_];
  double core = spec_.unit_W * at.clock_share * (done.unit_s - before_.unit_s);
  for (std::size_t s = 0; s < kSlotCount; ++s) core += slot_W_[s] * (done.slot_s[s] - before_.slot_s[s]);
  core += bytes(done.l2_bytes, before_.l2_bytes, spec_.l2_pJ_per_byte);
  return {core * at.voltage_squared, bytes(done.hbm_bytes, before_.hbm_bytes, spec_.hbm_pJ_per_byte) +
                                         bytes(done.link_bytes, before_.link_bytes, spec_.link_pJ_per_byte)};
}

std::size_t PowerGovernor::step_within_limit(const Joules& window) const {
  const Step& was = steps_[step_];
  for (std::size_t s = 0; s + 1 < steps_.size(); ++s) {
    const double faster = steps_[s].clock_share / was.clock_share;
    const double core = window.core * steps_[s].voltage_squared / was.voltage_squared;
    if (spec_.idle_W + (core + window.rest) * faster / window_s_ <= spec_.limit_W) return s;
  }
  return steps_.size() - 1;
}

void PowerGovernor::end_window(const PoweredWork& done, std::int64_t idle) {
  const Joules window = since_window_began(done);
  const double all = spec_.idle_W * window_s_ + window.core + window.rest;
  windows_.push_back({all / window_s_, clock_share()});
  joules_ += all + spec_.idle_W * window_s_ * static_cast<double>(idle);
  before_ = done;
  step_ = idle > 0 ? 0 : step_within_limit(window);
  for (std::int64_t i = 0; i < idle; ++i) windows_.push_back({spec_.idle_W, 1});
}

double PowerGovernor::joules(const PoweredWork& done, double seconds) const {
  const Joules open = since_window_began(done);
  return joules_ + spec_.idle_W * seconds + open.core + open.rest;
}

}  // namespace weft
