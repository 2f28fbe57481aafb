// The configured workload as one program a GPU.
#pragma once

#include <string>
#include <vector>

#include "cli/system_config.h"
#include "sim/program.h"
#include "traces/trace.h"

namespace weft {

// One program a GPU. `notes` gets what a user should know: what was guessed or taken to be so. Throws InputError for a
// trace or model that cannot be read or does not fit the system.
[[nodiscard]] std::vector<Program> make_programs(const RunConfig& config, std::vector<std::string>& notes);

// Whether each GPU has a rank of its own to replay, with kernels of its own; else all have the same.
[[nodiscard]] bool replays_each_rank(const Trace& trace, const TraceWorkload& workload);

}  // namespace weft
