// Files of fitted demands, "weft-demands/3" (docs/formats.md): what `weft calibrate` found for the kernels of a trace
// on a GPU, so that runs need not search again.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/calibration.h"

namespace weft {

// What fits depend on. They hold for a run where all of this is equal.
struct DemandsOrigin {
  std::string trace;                                   // the file, for people
  std::string trace_sha256;                            // of its content, unpacked
  std::string system;                                  // name, for people
  std::string gpu_sha256;                              // of the GPU's part of the system
  std::vector<std::vector<std::string>> guess_sha256;  // by program and iteration: of the demands before the fit
};

// `programs`: those of all ranks, or the one that all GPUs have. Throws MissingInput when the trace cannot be read.
[[nodiscard]] DemandsOrigin demands_origin(const TraceWorkload& trace, const SystemSpec& system,
                                           std::span<const Program> programs);

// `fits` by program and OpId. Gzip when the name ends in ".gz"; replaced whole. Throws InputError when the file cannot
// be written.
void write_demands(const std::filesystem::path& file, const DemandsOrigin& origin, std::span<const Program> programs,
                   const std::vector<std::vector<DemandFit>>& fits);

// The fits of the operations of `programs`, by OpId; the file may hold more iterations. Throws MissingInput, and
// InputError that says what differs when the file was made from another trace, for another GPU, or when this version of
// weft guesses other demands.
[[nodiscard]] std::vector<std::vector<DemandFit>> read_demands(const std::filesystem::path& file,
                                                               const DemandsOrigin& wanted,
                                                               std::span<const Program> programs);

}  // namespace weft
