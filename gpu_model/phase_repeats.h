// What a group of warps repeats: phases that do the same with other addresses, over and over. Where all groups of all
// GPUs repeat something and flags count as much in a turn as is waited for, turns can be left out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_model/phase.h"

namespace weft {

// The longest turn that is looked for, in phases: of eight slots, pieces of eight ranks.
inline constexpr std::uint32_t kLongestTurn = 64;

struct PhaseRepeats {
  std::uint32_t period = 0;          // phases of a turn; 0: nothing is repeated
  std::uint64_t turns = 0;           // whole ones ahead that are alike
  std::uint64_t kind = 0;            // what its phases do, whichever of them comes first
  std::uint64_t role = 0;            // likewise, but for which flags: the same in all blocks
  bool even = true;                  // its phases move as much each, and differ in addresses and flags only
  std::vector<std::uint64_t> works;  // of its phases, in ascending order, each once
  std::uint64_t remote_lines = 0;    // of a turn, that go to other GPUs or come from there
  // In a turn, flags of other GPUs or the own one count so far...
  struct Count {
    Target target = Target::local;
    std::uint16_t gpu = 0;  // of remote; of multicast, the group
    std::uint32_t flag = 0;
    std::uint32_t by = 0;
  };
  std::vector<Count> counts;
  // ...and own ones are waited for by so much more than in the turn before, next until they have counted to `next`.
  struct Wait {
    std::uint32_t flag = 0;
    std::uint32_t by = 0;
    std::uint32_t next = 0;
  };
  std::vector<Wait> waits;
  // Behind `most` turns, if there are as many and more than were needed to find the period.
  std::unique_ptr<PhaseCursor> cursor;
  Phase phase;
};

// A hash of what a phase does once it has begun: all but addresses and what flags count to.
[[nodiscard]] std::uint64_t work_of(const Phase& phase);

// Of loops with runs of like steps in them (a ring: steps that sum, then steps that pass on), which is the turn.
enum class Turn : std::uint8_t { loop, step };

// Of the group of warps in `phase`, whose next phases come from `cursor`; `most` turns are looked at.
[[nodiscard]] PhaseRepeats find_repeats(const Phase& phase, const PhaseCursor& cursor, Turn turn, std::uint64_t most);

}  // namespace weft
