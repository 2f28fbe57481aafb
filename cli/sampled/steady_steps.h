// Leaves out steps that collectives repeat: once each takes as long as those before, all groups of warps of all GPUs go
// on by equally many turns of theirs (gpu_model/phase_repeats.h): loops, or where too few are ahead steps of the run
// that they are in, whose pace is known in the next loop. What is under way stays as it is. Flags must count in a turn
// as much as is waited for, or nothing is left out. Kernels that run beside them, or where collectives wait, go on for
// as long at the rate that they had (steady_kernels.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cli/run/machine.h"
#include "cli/sampled/steady_kernels.h"
#include "cli/sampled/steady_turns.h"

namespace weft {

class SteadySteps {
 public:
  explicit SteadySteps(Machine& machine);

  // Of kernels, so many times what was looked at is left out at first; twice as much each time that it stays so.
  static constexpr double kFewest = 4;

  // Between two windows, all GPUs being at `now`.
  void look(Time now, const TouchElsewhere& elsewhere);
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_; }

 private:
  using Warps = SteppingWarps;
  // Of the first GPU's HBM, so far or in a second.
  struct HbmBytes {
    double read = 0, written = 0;
  };
  struct Mark {
    Time when;     // with what was left out
    HbmBytes hbm;  // likewise
    std::vector<Warps> warps;
    SteadyKernels::Mark kernels;
  };
  using Marks = std::vector<Mark>;

  [[nodiscard]] std::optional<Mark> mark(Time now) const;
  // Phases that warps have been through, each, on average.
  [[nodiscard]] static double phases(const Mark& at);
  [[nodiscard]] const std::vector<PhaseRepeats>* repeats(std::span<const Mark> window, Turn turn);
  // Of many steps of many GPUs, in the first ones and in short windows it does not show who will hold up the others.
  [[nodiscard]] bool too_soon(std::span<const Mark> window, Turn turn);
  [[nodiscard]] std::vector<PhaseRepeats> turns_ahead(const Mark& at, const std::vector<PhaseRepeats>& one, Turn turn,
                                                      double most, const std::vector<double>& leads = {}) const;
  // Turns until those that get ahead of others have filled all that lies between; 0: some wait already.
  [[nodiscard]] double room(const Mark& at, const std::vector<PhaseRepeats>& one,
                            const std::vector<double>& leads) const;
  // Turns for which flags count as much as is waited for, or have counted it already; 0: they do not.
  [[nodiscard]] double turns_of_flags(const Mark& at, const std::vector<PhaseRepeats>& one) const;
  template <class Visit>
  void for_each_count(const Mark& at, const std::vector<PhaseRepeats>& repeats, Visit&& visit) const;
  struct Pace {
    double turn = 0;     // seconds
    double scatter = 0;  // a share of it
    HbmBytes hbm;        // in a second
  };
  // What comes next when all has gone on as between these marks: turns of collectives, and for how long.
  struct Ahead {
    std::vector<PhaseRepeats> repeats;  // by warps; none: collectives wait, or there are none
    Pace pace;
    std::uint64_t turns = 0;  // of those that do not get ahead of others; each has its own in `repeats`
    bool rest = false;        // of steps, all of the run that may be left out
    double time = 0;
    std::uint64_t remote_lines = 0;
  };
  [[nodiscard]] bool passed(const Mark& from, const Mark& to, bool waves) const;
  bool look(Marks& marks, const Mark& found, bool waves, const TouchElsewhere& elsewhere);
  [[nodiscard]] bool collectives_move() const;
  // Of the pace, the turn is found.
  std::optional<Ahead> collectives_ahead(std::span<const Mark> window, Turn turn, Pace pace);
  [[nodiscard]] static std::optional<double> whole_turn_of(std::span<const Mark> window,
                                                           const std::vector<PhaseRepeats>& one);
  [[nodiscard]] bool fit(const Mark& from, const Mark& now, bool waves, Ahead& ahead);
  // Seconds for the turns ahead, and what those before them took too little or too much.
  [[nodiscard]] double settle(const Ahead& ahead);
  // What is ahead, from one share of it to another.
  void go_on(const Mark& now, Ahead& ahead, double from, double to, Told told, const TouchElsewhere& elsewhere);
  // The halves of the window agree but for `scatter`. None: there is nothing to leave out. Steps: the rest of a run.
  std::optional<Turn> leave_out(std::span<const Mark> window, double scatter, bool waves,
                                const TouchElsewhere& elsewhere);
  // Steps whose pace is known.
  bool leave_out_known(const Mark& now, const TouchElsewhere& elsewhere);
  void leave_out(const Mark& now, Ahead& ahead, const TouchElsewhere& elsewhere);
  [[nodiscard]] static GpuProgress not_told(const HbmBytes& moved, const GpuProgress& told);

  Machine* machine_;
  std::int64_t between_;  // two looks, memory transactions of the first GPU
  std::int64_t next_look_ = 0;
  double steps_;                                       // of a window
  std::map<Turn, std::vector<PhaseRepeats>> repeats_;  // at this look, as far as they were asked for
  SteadyKernels kernels_;
  Marks marks_;
  Marks wave_marks_;                               // of windows in which kernels had whole waves
  double most_ = kFewest;                          // windows that are left out at once
  std::unordered_map<std::uint64_t, Pace> paces_;  // of collectives alone, by the steps that all repeat
  double next_known_ = 0;                          // phases, on average, at which they are looked for
  // Of many GPUs, the like steps that they are in.
  struct Run {
    std::uint64_t kind = 0;
    double began = 0;  // phases of the first group of warps
  };
  std::map<Turn, Run> runs_;
  // Of collectives alone, turns of one kind so far, and the time that was given to them.
  struct LeftOut {
    std::uint64_t kind = 0;
    double turns = 0;
    double time = 0;  // seconds
  } left_out_;
  SubCycle uncertainty_ = 0;
};

}  // namespace weft
