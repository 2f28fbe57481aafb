// Reads back the kernels.csv of a run (docs/formats.md).
#pragma once

#include <filesystem>
#include <vector>

#include "cli/run/result.h"

namespace weft {

// Rows in the order of the file; columns may stand in any order, further ones are ignored, and those of phase and
// causes may be missing. Throws MissingInput, and InputError naming the line for a missing column, a field that is no
// number, or a quote that does not end.
[[nodiscard]] std::vector<OperationRecord> read_kernels_csv(const std::filesystem::path& file);

}  // namespace weft
