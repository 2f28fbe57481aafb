// Times of the phases of an iteration from the operations that ran (docs/formats.md defines each).
#pragma once

#include <cstdint>
#include <vector>

#include "cli/config/system_config.h"
#include "cli/run/result.h"
#include "cli/run/step_bounds.h"

namespace weft {

// How long any operation ran on a GPU.
[[nodiscard]] double busy_seconds(const std::vector<OperationRecord>& operations, std::uint32_t gpu);

// Fills iteration, per_iteration_s, slowdown_by_cause and the throughput from result.operations.
void gather_iterations(const RunConfig& config, const std::vector<Program>& programs, const StepBounds& bounds,
                       RunResult& result);

}  // namespace weft
