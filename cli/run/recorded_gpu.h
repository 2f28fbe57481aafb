// Replays on another GPU than the recorded one (workload.recorded_on): kernels are fitted where they were recorded, and
// run, with the demands that were found, where they are simulated.
#pragma once

#include <string>
#include <vector>

#include "cli/run/programs.h"

namespace weft {

// What the trace was recorded on: the system that workload.recorded_on names, else the simulated one.
[[nodiscard]] SystemSpec recorded_system(const RunConfig& config);

// Whether that has another GPU. Then make_programs() fits the kernels, and ProgramOp::measured_alone is what they take
// alone on the simulated GPU.
[[nodiscard]] bool is_on_another_gpu(const RunConfig& config);

// `programs` as recorded, of a run that is on another GPU.
void bring_to_simulated_gpu(const RunConfig& config, std::vector<Program>& programs, const Running& running,
                            std::vector<std::string>& notes);

}  // namespace weft
