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

// Divides the time that a kernel took longer than without communication by what held it up while it ran; sums to
// `added_s`.
[[nodiscard]] SlowdownByCause attribute(const KernelLedger& ledger, const ClockDomain& clock, double added_s);

// A collective's row but for its times; and what follows from these.
[[nodiscard]] CollectiveResult described(const ProgramOp& op, const Scripts::Collective& collective);
void set_bandwidths(CollectiveKind kind, CollectiveResult& row);

}  // namespace weft
