// What a collective does on a GPU: it waits until its last rank has come, then it moves data. A waiting one takes
// compute units from others, a moving one memory too.
#pragma once

#include <vector>

#include "cli/run/machine.h"
#include "cli/run/result.h"
#include "cli/run/scripts.h"
#include "traces/intervals.h"

namespace weft {

struct CollectivePhases {
  std::vector<Interval> waiting;  // at least one collective does, and none moves
  std::vector<Interval> moving;
};

// By GPU. A rank has come when its kernel starts; collectives that did not end are left out.
[[nodiscard]] std::vector<CollectivePhases> collective_phases(const Scripts& scripts, const Machine& machine);

// Fills beside_waiting_s and beside_moving_s of the kernels.
void place_beside(const std::vector<CollectivePhases>& phases, std::vector<OperationRecord>& operations);

// The part of an operation's causes that collectives which waited have: units by the time beside them, memory only if
// none moved beside it.
[[nodiscard]] SlowdownByCause caused_by_waiting(const OperationRecord& operation);

}  // namespace weft
