// The fidelity `sampled`: the same models, and what repeats is simulated once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/run/result.h"
#include "cli/run/scripts.h"
#include "gpu_model/alone.h"

namespace weft {

// Why a run must be simulated in detail as a whole, in words; empty: it can be sampled.
[[nodiscard]] std::string why_not_sampled(const RunConfig& config, const std::vector<Program>& programs);

// `fits` are those of calibrated kernels, which `programs` have; empty: none are. Fills `result` but for its engine's
// wall time and memory.
void simulate_sampled(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts,
                      const std::vector<DemandFit>& fits,
                      const std::function<void(double, const std::string&)>& progress, RunResult& result);

}  // namespace weft
