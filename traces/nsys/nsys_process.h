// One process of an export of Nsight Systems, in the form that profilers of CUPTI share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture/captured_process.h"
#include "traces/nsys/nsys_database.h"

namespace weft {

// The processes (globalPid) with operations on a GPU, ascending; one without a number where the export has none.
[[nodiscard]] std::vector<std::optional<std::int64_t>> nsys_processes(const NsysDatabase& database);

// Throws InputError where rows do not hold what their columns promise.
[[nodiscard]] CapturedProcess read_nsys_process(const NsysDatabase& database, std::optional<std::int64_t> process);

}  // namespace weft
