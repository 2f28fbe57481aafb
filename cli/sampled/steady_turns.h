// The pace at which groups of warps repeat their turns, from where they were before and after a window.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu_model/gpu_work.h"
#include "gpu_model/phase_repeats.h"

namespace weft {

struct SteppingWarps {
  std::uint32_t gpu = 0;
  CollectiveSteps at;
};

struct SteadyTurn {
  double seconds = 0;
  // By warps, turns of theirs in one of these: those that fill slots for others get ahead until all are full. None: one
  // each.
  std::vector<double> leads;
};

// What a turn takes, of a window of so many seconds; all by warps. Where all groups do alike, and the one that was
// furthest behind is slower than their mean, its turn: those ahead go faster until what lies between is full, then at
// its pace. Else the mean. Where some groups have fewer phases in a turn than others, these tell it, and others may get
// ahead of them. None: some went on so much faster or slower than others that it does not stay so.
[[nodiscard]] std::optional<SteadyTurn> turn_between(std::span<const SteppingWarps> from,
                                                     std::span<const SteppingWarps> to, double window,
                                                     const std::vector<PhaseRepeats>& repeats);

// How far groups of warps were in the mean, at one of the marks of a window.
struct TurnsAt {
  double seconds = 0;
  double turns = 0;
};

// Seconds of one of the last whole turns of the window; none: it has less than one.
[[nodiscard]] std::optional<double> whole_turn(std::span<const TurnsAt> marks);

}  // namespace weft
