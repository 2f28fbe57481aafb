// Files of fitted demands, "weft-demands/1" (docs/formats.md): what `weft calibrate` found for the kernels of a trace
// on a GPU, so that runs need not search again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/system_config.h"
#include "gpu_model/calibration.h"

namespace weft {

// What fits depend on. They hold for a run where all of this is equal.
struct DemandsOrigin {
  std::string trace;                      // the file, for people
  std::string trace_sha256;               // of its content, unpacked
  std::string system;                     // name, for people
  std::string gpu_sha256;                 // of the GPU's part of the system
  std::vector<std::string> guess_sha256;  // by iteration: of the demands before they were fitted
};

// Throws MissingInput when the trace cannot be read.
[[nodiscard]] DemandsOrigin demands_origin(const TraceWorkload& trace, const SystemSpec& system,
                                           const Program& program);

// `fits` by OpId of `program`. Gzip when the name ends in ".gz"; replaced whole. Throws InputError when the file cannot
// be written.
void write_demands(const std::filesystem::path& file, const DemandsOrigin& origin, const Program& program,
                   const std::vector<DemandFit>& fits);

// The fits of the operations of `program`, by OpId; the file may hold more iterations. Throws MissingInput, and
// InputError that says what differs when the file was made from another trace, for another GPU, or when this version of
// weft guesses other demands.
[[nodiscard]] std::vector<DemandFit> read_demands(const std::filesystem::path& file, const DemandsOrigin& wanted,
                                                  const Program& program);

}  // namespace weft
