// From a sweep file to its points.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/sweep/manifest.h"
#include "cli/sweep/sweep_file.h"

namespace weft {

// SHA-256 of the file of this program: another build may compute something else.
[[nodiscard]] std::string program_sha256();

// Of all that decides the points but the contents of the traces and such that configurations name.
[[nodiscard]] std::string sweep_sha256(const SweepFile& sweep, const std::string& program);

// Told the key of a run and its resolved configuration, once each.
using PlannedRun = std::function<void(const std::string& key, const Json& config)>;

// All points: grid and zip in the order of the file, the first slowest, less what "where" leaves out; for each the
// seeds, for each of these the repetitions. A run's key is the SHA-256 of the program, the resolved configuration and
// the contents of the files it names. A point whose configuration cannot be read has the reason instead. Throws
// InputError when no point is left, or none can be read.
[[nodiscard]] Manifest plan_sweep(const SweepFile& sweep, const std::filesystem::path& file, const std::string& program,
                                  const PlannedRun& planned);

// The seed of a repetition: the point's own for 0, else drawn from both.
[[nodiscard]] std::int64_t seed_of_repetition(std::int64_t seed, std::int64_t repetition);

}  // namespace weft
