// What `weft calibrate` says: which demands were measured, derived or guessed, and how well they were fitted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu_model/calibration.h"
#include "sim/json_reader.h"

namespace weft {

// Shape in docs/formats.md, "Demands". `programs` have their demands as they were before the fit.
[[nodiscard]] Json calibration_report(std::span<const Program> programs,
                                      const std::vector<std::vector<DemandFit>>& fits);

// The same for people: a row a class of kernels, longest first.
[[nodiscard]] std::string calibration_text(const Json& report);

}  // namespace weft
