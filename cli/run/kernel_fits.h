// The demands that kernels are fitted to, of a trace: in the run, or from a file of `weft calibrate`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/alone.h"

namespace weft {

// Where a run's kernels are fitted, on which GPU.
struct FittingPlace {
  const SystemSpec& system;
  std::uint32_t threads = 1;
  const TraceWorkload* trace = nullptr;  // its `demands`, if any, are of this system's GPU
  bool skip_waves = false;               // as run_kernels_alone's
};

// By program and OpId, of programs whose kernels differ (distinct_kernels). `transactions` grows by those simulated;
// `progress` sees the share done. Throws as read_demands.
[[nodiscard]] std::vector<std::vector<DemandFit>> fits_of(const FittingPlace& place, std::span<const Program> different,
                                                          const std::function<void(double)>& progress,
                                                          std::int64_t& transactions);
// Of demands that are as they shall be: kernels take ProgramOp::measured_alone.
[[nodiscard]] std::vector<std::vector<DemandFit>> no_fits(std::span<const Program> different);
// Gives all programs their demands: the first one's fits, where there is one list only.
void apply_fits(const std::vector<std::vector<DemandFit>>& fits, std::vector<Program>& programs);
// How well that went; nothing where no kernel has a time to be fitted to.
void note_fits(std::span<const Program> different, const std::vector<std::vector<DemandFit>>& fits,
               std::vector<std::string>& notes);

}  // namespace weft
