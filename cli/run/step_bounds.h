// What else bounds the iterations of a replay than the operations that ran.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/frontend.h"
#include "sim/program.h"

namespace weft {

struct StepBounds {
  std::optional<double> begin_s;  // when the first device got to the first iteration; absent: with the host
  // By iteration, as the recording says of the programs; empty: it says nothing.
  std::vector<double> host_end_s;  // the last host is through with it
  std::vector<double> end_s;       // and does nothing else any more behind the last operation

  // The iteration does not end before.
  void end(std::uint32_t iteration, double seconds);
  // Widens them by a GPU: its program as it ran, `times` by operation.
  void add(const Program& program, std::span<const OpTimes> times, const ClockDomain& clock);
};

// Seconds of each iteration, from the end of those before to its own. The first one begins with the host; but if the
// device was behind then and still is when the host is through with it, it took as much over from before as it hands
// on, and does not count that.
[[nodiscard]] std::vector<double> iteration_lengths(const std::vector<double>& device_end_s, const StepBounds& bounds);

}  // namespace weft
