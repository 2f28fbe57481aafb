// Steps that all GPUs do over and over, as those of a ring: where they drift apart there is no quiet moment between
// two, and a stretch would be all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/run/machine.h"
#include "cli/run/scripts.h"

namespace weft {

// Operations of a program that come again, `times` times, the same but for buffers: each time `period` of them.
struct RepeatedSteps {
  std::uint32_t first = 0, period = 1, times = 0;
  bool operator==(const RepeatedSteps&) const = default;
};
// From operation `from` on, those with kernels and shifts.
[[nodiscard]] std::vector<RepeatedSteps> repeated_steps(const Program& program, std::uint32_t from);

// By operation: collectives that GPUs may end at different times. Those with a root, shifts, which over nodes a NIC
// brings to some, and all-reduces by one tree, whose root has the sum first. `scripts`: null, none is by a tree.
[[nodiscard]] std::vector<bool> uneven_operations(const Program& program, const Scripts* scripts);

// Whether GPUs ended one of those among these operations far apart, and were not held together by a kernel that lasts
// longer.
[[nodiscard]] bool ended_apart(const Machine& machine, const Program& program, const std::vector<bool>& uneven,
                               const std::vector<std::uint32_t>& operations);

// While a machine runs whose GPUs have drifted apart: once steps take the same time on all of them, all but the last
// ones are left out.
class SteadySequence {
 public:
  SteadySequence(Machine& machine, const Program& program, std::uint32_t from)
      : machine_(&machine), program_(&program), from_(from) {}

  // Once, when GPUs have drifted apart.
  void begin();
  // Between two windows.
  void look(Time now);
  // One standard deviation of what was left out, about.
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_; }

 private:
  struct Moved {
    GpuProgress gpu;
    double communicating = 0;  // seconds of units
    std::uint64_t remote_lines = 0;
  };
  struct Going {
    RepeatedSteps steps;
    std::vector<std::uint32_t> ended;  // steps, by GPU
    Moved before = {}, last = {};      // of the first GPU, at the end of the last two
  };
  // False: the steps have ended on the first GPU, or are left out.
  bool look(Going& going, Time now);
  [[nodiscard]] Moved moved() const;
  // How much later operations of the step ended than those of the one before, on average.
  [[nodiscard]] double time_of(const RepeatedSteps& steps, std::uint32_t gpu, std::uint32_t step) const;
  [[nodiscard]] bool steady(const Going& going) const;
  bool leave_out(const Going& going, Time now);

  Machine* machine_;
  const Program* program_;
  std::vector<Going> going_;
  std::uint32_t from_;
  SubCycle uncertainty_ = 0;
};

}  // namespace weft
