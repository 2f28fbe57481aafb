#include "workloads/host_clock.h"

#include <algorithm>
#include <cmath>

namespace weft {

Time HostClock::delay_before(const Node& node) {
  const Recorded& recorded = *node.recorded;
  if (!started_ || node.iteration != iteration_) enter(node.iteration);
  const Time delay = recorded.issued - free_at_;
  free_at_ = recorded.issued;
  if (node.kind == NodeKind::host_wait) free_at_ += recorded.duration;
  return own(delay);
}

StepEnd HostClock::step_end(Time device_end) const {
  const Time end = graph_.iteration_lengths[iteration_];
  return {own(end - free_at_), own(end - std::max(free_at_, device_end))};
}

// Moves the host's last moment into the clock of `iteration`, which starts at 0.
void HostClock::enter(std::uint32_t iteration) {
  const auto& starts = graph_.iteration_starts;
  if (iteration < starts.size()) {
    free_at_ -= starts[iteration] - (started_ ? starts[iteration_] : Time(0));
  } else {
    free_at_ = Time(0);
  }
  iteration_ = iteration;
  started_ = true;
}

// Calls that overlap in the record (several host threads) leave no time of the host's own between them.
Time HostClock::own(Time recorded) const {
  return Time(std::llround(std::max<double>(0, static_cast<double>(recorded.count())) * scale_));
}

}  // namespace weft
