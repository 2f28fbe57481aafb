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
  double begin_s = 0;  // when the first device got to the first iteration: Program::begins_with
  // By iteration, as the recording says of the programs; empty: it says nothing.
  std::vector<double> host_end_s;  // the last host is through with it
  std::vector<double> end_s;       // and does nothing else any more behind the last operation
};

// From the programs of all GPUs as they ran: `times` by operation.
class StepBoundsOf {
 public:
  void add(const Program& program, std::span<const OpTimes> times, const ClockDomain& clock);
  [[nodiscard]] StepBounds bounds() const { return {begin_s_.value_or(0), host_end_s_, end_s_}; }

 private:
  std::optional<double> begin_s_;
  std::vector<double> host_end_s_, end_s_;
};

// Seconds of each iteration, from the end of those before to its own. The first one begins with the host; but if the
// device was behind then and still is when the host is through with it, it took as much over from before as it hands
// on, and does not count that.
[[nodiscard]] std::vector<double> iteration_lengths(const std::vector<double>& device_end_s, const StepBounds& bounds);

}  // namespace weft
