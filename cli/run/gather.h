// From a machine that has run to what it found.
#pragma once

#include "cli/run/machine.h"
#include "cli/run/result.h"
#include "cli/run/scripts.h"
#include "gpu_model/alone.h"

namespace weft {

// Fills operations, iteration, causes, collectives, gpus, links, switches and counters of `result`.
void gather(const RunConfig& config, const std::vector<Program>& programs, const AlonePasses& alone,
            const Scripts& scripts, const Machine& machine, RunResult& result);

// Divides the time that a kernel took longer than without communication by what held it up while it ran; sums to
// `added_s`.
[[nodiscard]] SlowdownByCause attribute(const KernelLedger& ledger, const ClockDomain& clock, double added_s,
                                        double undisturbed_slow_clock = 0);

// An operation of GPU 0 but for what it takes alone.
[[nodiscard]] OperationRecord recorded(const ProgramOp& op, std::uint32_t number, const OpTimes& times,
                                       const ClockDomain& clock);

// What all links of a GPU carry each way, GB/s.
[[nodiscard]] double link_rate(const Topology& topology, std::uint32_t gpu);
// No collective beats its latency-bandwidth bound: what must leave or reach a GPU, over all of its links. A switch that
// reduces takes each GPU's message once; without one, the bus bandwidth is what goes through a GPU. Throws
// InternalError.
void check_bound(double links, const CollectiveResult& row);

// A collective's row but for its times; and what follows from these.
[[nodiscard]] CollectiveResult described(const ProgramOp& op, const Scripts::Collective& collective);
void set_bandwidths(CollectiveKind kind, CollectiveResult& row);

}  // namespace weft
