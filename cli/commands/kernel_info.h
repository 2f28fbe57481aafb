// The warp programs of kernels, for people and scripts: occupancy, phases, and what a round of the first block takes.
#pragma once

#include <string>

#include "gpu_model/gpu_spec.h"
#include "sim/json_reader.h"

namespace weft {

// { "kernels": [...] }: one entry for all launches that differ in their addresses only, in the order of the first
// ones; those whose name contains `name`.
[[nodiscard]] Json kernel_info_json(const Program& program, const GpuSpec& gpu, const std::string& name);
[[nodiscard]] std::string kernel_info_text(const Json& info);

}  // namespace weft
