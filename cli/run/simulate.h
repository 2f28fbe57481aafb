// One simulation, from a checked configuration to what it found.
#pragma once

#include <functional>
#include <string>

#include "cli/config/system_config.h"
#include "cli/run/result.h"

namespace weft {

// Builds the workload, the programs and the system, runs them and gathers the result. `progress` is told now and then
// how far it is (0 to 1) and what is going on. Throws InputError for a workload that cannot be read or does not fit the
// system. Once a process: SystemC elaborates only once.
[[nodiscard]] RunResult simulate(const RunConfig& config,
                                 const std::function<void(double fraction, const std::string& stage)>& progress);

}  // namespace weft
