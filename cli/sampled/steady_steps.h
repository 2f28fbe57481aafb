// Leaves out steps that collectives repeat while they have all GPUs for themselves: once each takes as long as those
// before, all groups of warps of all GPUs go on by equally many turns of theirs (gpu_model/phase_repeats.h). What is
// under way stays as it is. Flags must count in a turn as much as is waited for, or nothing is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/machine.h"

namespace weft {

class SteadySteps {
 public:
  explicit SteadySteps(Machine& machine);

  // Between two windows, all GPUs being at `now`.
  void look(Time now, const TouchElsewhere& elsewhere);
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_; }

 private:
  struct Warps {
    std::uint32_t gpu = 0;
    Gpu::Steps at;
  };
  struct Mark {
    Time when;  // with what was left out
    std::vector<Warps> warps;
  };

  [[nodiscard]] std::optional<Mark> mark(Time now) const;
  // Phases that warps have been through, each, on average.
  [[nodiscard]] static double phases(const Mark& from, const Mark& to);
  [[nodiscard]] std::vector<PhaseRepeats> repeats(const Mark& at) const;
  [[nodiscard]] bool flags_agree(const Mark& at, const std::vector<PhaseRepeats>& repeats);
  template <class Visit>
  void for_each_count(const Mark& at, const std::vector<PhaseRepeats>& repeats, Visit&& visit) const;
  [[nodiscard]] static std::optional<double> turns_between(const Mark& from, const Mark& to,
                                                           const std::vector<PhaseRepeats>& repeats);
  // The windows between these marks agree but for `scatter`. False: there is nothing to leave out.
  bool leave_out(const Mark& from, const Mark& now, double scatter, const TouchElsewhere& elsewhere);

  Machine* machine_;
  std::int64_t between_;  // two looks, memory transactions of the first GPU
  std::int64_t next_look_ = 0;
  double steps_;  // of a window
  std::vector<Mark> marks_;
  SubCycle uncertainty_ = 0;
};

}  // namespace weft
