// What links, HBM and memory did over time.
#pragma once

#include <vector>

#include "cli/config/run_config.h"
#include "cli/run/machine.h"
#include "cli/run/result.h"

namespace weft {

// Fills the counters of `result`, whose rows of GPUs are there: all with one period, so that the run has at most
// kMostTimeBins of them. Of each GPU the HBM's traffic and what is allocated by class, of each link the share of time
// in which it sends; of a large system the first HbmOverTime::kMostGpus and Fabric::kMostLoads of them, and a note.
void gather_counters(const RunConfig& config, const std::vector<Program>& programs, const Machine& machine,
                     RunResult& result);

// The same, without links, of GPUs that all do what one does: its operations and HBM traffic.
void gather_equal_counters(const RunConfig& config, const Program& program, const HbmOverTime& hbm,
                           const std::vector<OpTimes>& times, const ClockDomain& clock, Time end, RunResult& result);

}  // namespace weft
