// The configured workload as one program a GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "sim/program.h"
#include "traces/trace.h"

namespace weft {

using Running = std::function<void(double done, const std::string& what)>;

// One program a GPU. `notes` gets what a user should know: what was guessed or taken to be so. Throws InputError for a
// trace or model that cannot be read or does not fit the system.
//
// `running`: they are to be run, so what the late ranks of a recording waited for is simulated (recorded_waits.h),
// which may take minutes; without, what is said of them there by the collectives' times alone will do.
[[nodiscard]] std::vector<Program> make_programs(const RunConfig& config, std::vector<std::string>& notes,
                                                 const Running* running = nullptr);

// Whether each GPU has a rank of its own to replay, with kernels of its own; else all have the same.
[[nodiscard]] bool replays_each_rank(const Trace& trace, const TraceWorkload& workload);

}  // namespace weft
