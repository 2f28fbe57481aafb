// Leaves out what collectives repeat while they have all GPUs for themselves: in long phases, rounds at the pace that
// was seen. What is under way stays as it is, and how phases begin and end is simulated.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cli/run/machine.h"
#include "cli/sampled/steady_steps.h"
#include "gpu_model/collective_pace.h"

namespace weft {

class SteadyCollectives {
 public:
  explicit SteadyCollectives(Machine& machine) : machine_(&machine), steps_(machine) {}

  // Between two windows, all GPUs being at `now`.
  void look(Time now);
  // One standard deviation of what the rounds take that were left out, about: subcycles.
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_ + steps_.uncertainty(); }

 private:
  struct Warps {
    std::uint32_t gpu = 0;
    PacedWarps at;
  };
  struct Mark {
    Time when;
    std::vector<Warps> warps;
  };
  using Rates = std::vector<double>;  // by warps: rounds in a nanosecond
  // How fast the warps go that are there together.
  struct Pace {
    Rates sum;
    std::uint32_t samples = 0;
    double scatter = 0;  // sum over samples, relative
  };

  [[nodiscard]] bool all_in_long_phases(Mark& mark) const;
  [[nodiscard]] static std::uint64_t company_of(const Mark& mark);
  [[nodiscard]] static Rates rates(const Mark& from, const Mark& to);
  bool measure(const Mark& mark, Pace& pace);
  void leave_out(const Mark& mark, const Pace& pace);
  void touch_elsewhere(std::uint32_t sender, const LineStream& stream, L2Cache::Lines lines, bool stored);

  Machine* machine_;
  SteadySteps steps_;
  std::int64_t next_look_ = 0;  // memory transactions of the first GPU
  std::vector<Mark> marks_;     // in the same phases
  std::unordered_map<std::uint64_t, Pace> paces_;
  SubCycle uncertainty_ = 0;
};

}  // namespace weft
