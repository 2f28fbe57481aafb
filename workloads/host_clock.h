// The host's clock over recorded operations.
#pragma once

#include <cstdint>

#include "workloads/graph.h"

namespace weft {

// Asked for the operations of `graph` in their order, which outlives it.
class HostClock {
 public:
  // `scale`: of the host's own time.
  HostClock(const Graph& graph, double scale) : graph_(graph), scale_(scale) {}

  // What the host did since it had issued the operation before, or had waited, if that is a host_wait.
  Time delay_before(const Node& node);
  // How its iteration ended behind the last operation asked for, as if there were no more. `device_end`: of the last of
  // its operations, since its start. The graph knows the lengths of iterations.
  [[nodiscard]] StepEnd step_end(Time device_end) const;

 private:
  void enter(std::uint32_t iteration);
  [[nodiscard]] Time own(Time recorded) const;

  const Graph& graph_;
  double scale_;
  bool started_ = false;
  Time free_at_;  // when the host last issued or stopped waiting, since the start of its iteration
  std::uint32_t iteration_ = 0;
};

}  // namespace weft
