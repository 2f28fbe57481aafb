#include "cli/run/step_bounds.h"

#include <algorithm>

namespace weft {

void StepBounds::end(std::uint32_t iteration, double seconds) {
  if (end_s.size() <= iteration) end_s.resize(iteration + 1);
  end_s[iteration] = std::max(end_s[iteration], seconds);
}

void StepBounds::add(const Program& program, std::span<const OpTimes> times, const ClockDomain& clock) {
  const auto at = [&](SubCycle t) { return to_seconds(clock.to_time(std::max<SubCycle>(t, 0))); };
  const double begin = program.begins_with ? at(times[program.begins_with->value].began()) : 0;
  begin_s = std::min(begin_s.value_or(begin), begin);

  const std::vector<StepEnd>& steps = program.step_ends;
  host_end_s.resize(std::max(host_end_s.size(), steps.size()));
  std::vector<double> host(steps.size());  // issued its last operation, or waited
  std::vector<double> all(steps.size());   // and the device is through
  for (std::size_t o = 0; o < program.ops.size() && !steps.empty(); ++o) {
    const ProgramOp& op = program.ops[o];
    host[op.iteration] = at(op.kind == ProgramOpKind::host_wait ? times[o].end : times[o].called);
    all[op.iteration] = std::max({all[op.iteration], host[op.iteration], at(times[o].end)});
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    host_end_s[i] = std::max(host_end_s[i], host[i] + to_seconds(steps[i].host));
    end(static_cast<std::uint32_t>(i), all[i] + to_seconds(steps[i].idle));
  }
}

std::vector<double> iteration_lengths(const std::vector<double>& device_end_s, const StepBounds& bounds) {
  std::vector<double> lengths;
  double before = 0;
  for (std::size_t i = 0; i < device_end_s.size(); ++i) {
    if (i == 0) {
      const double host = bounds.host_end_s.empty() ? 0 : bounds.host_end_s[0];
      before = std::clamp(device_end_s[0] - host, 0.0, bounds.begin_s.value_or(0));
    }
    const double end = i < bounds.end_s.size() ? std::max(device_end_s[i], bounds.end_s[i]) : device_end_s[i];
    lengths.push_back(std::max(0.0, end - before));
    before = std::max(before, end);
  }
  return lengths;
}

}  // namespace weft
