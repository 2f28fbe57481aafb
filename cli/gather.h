// From a machine that has run to what it found.
#pragma once

#include "cli/machine.h"
#include "cli/programs.h"
#include "cli/result.h"
#include "gpu_model/alone.h"

namespace weft {

// Fills operations, iteration, causes, collectives, gpus, links, switches and counters of `result`.
void gather(const RunConfig& config, const std::vector<Program>& programs, const AlonePass& alone,
            const Scripts& scripts, const Machine& machine, RunResult& result);

// Where an operation's added time went, from what its blocks waited for beside other work and alone; sums to `added_s`.
[[nodiscard]] SlowdownByCause attribute(const KernelLedger& together, const KernelLedger& alone, double added_s);

}  // namespace weft
