// The keys of `gpu.power`.
#pragma once

#include "cli/config/engine_fields.h"
#include "cli/config/spec_fields.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"

namespace weft {

template <class Fields>
void power_fields(Fields& f, PowerSpec& power, Frequency full_clock) {
  constexpr double kMostW = 1e6;
  constexpr double kMostPJ = 1e9;
  f.number("limit_W", power.limit_W, 0.001, kMostW);
  f.number("idle_W", power.idle_W, 0, kMostW);
  f.number("unit_W", power.unit_W, 0, kMostW);
  f.object("slots_W", [&](auto& slots) {
    slots.number("issue", power.slots_W[static_cast<std::size_t>(Slot::issue)], 0, kMostW);
    slots.number("tensor", power.slots_W[static_cast<std::size_t>(Slot::tensor)], 0, kMostW);
    slots.number("fp32", power.slots_W[static_cast<std::size_t>(Slot::fp32)], 0, kMostW);
    slots.number("fp64", power.slots_W[static_cast<std::size_t>(Slot::fp64)], 0, kMostW);
    slots.number("sfu", power.slots_W[static_cast<std::size_t>(Slot::sfu)], 0, kMostW);
  });
  f.number("l2_pJ_per_byte", power.l2_pJ_per_byte, 0, kMostPJ);
  f.number("hbm_pJ_per_byte", power.hbm_pJ_per_byte, 0, kMostPJ);
  f.number("link_pJ_per_byte", power.link_pJ_per_byte, 0, kMostPJ);
  f.clock_MHz("lowest_clock_MHz", power.lowest_clock, 0.001, 1e6);
  f.clock_MHz("clock_step_MHz", power.clock_step, 0.001, 1e6);
  f.number("lowest_voltage", power.lowest_voltage, 0.01, 1);
  f.time_ns("window_ns", power.window, 1000, kMaxTimeNs);
  f.refuse_unless(power.idle_W < power.limit_W, "idle_W",
                  fmt::format("expected less than limit_W, {}, got {}", power.limit_W, power.idle_W));
  const auto megahertz_of = [](Frequency clock) { return static_cast<double>(clock.count()) * 1e-6; };
  f.refuse_unless(power.lowest_clock <= full_clock, "lowest_clock_MHz",
                  fmt::format("expected at most the GPU's clock_MHz, {}, got {}", megahertz_of(full_clock),
                              megahertz_of(power.lowest_clock)));
  // A stretch of a thousand is none of a real clock, and steps that nobody can tell apart cost a search each window.
  f.refuse_unless(power.lowest_clock.count() * 1000 >= full_clock.count(), "lowest_clock_MHz",
                  fmt::format("expected at least a thousandth of the GPU's clock_MHz, {}, got {}",
                              megahertz_of(full_clock), megahertz_of(power.lowest_clock)));
  f.refuse_unless(power.clock_step.count() * 10000 >= full_clock.count(), "clock_step_MHz",
                  fmt::format("expected at least a ten-thousandth of the GPU's clock_MHz, {}, got {}",
                              megahertz_of(full_clock), megahertz_of(power.clock_step)));
}

}  // namespace weft
