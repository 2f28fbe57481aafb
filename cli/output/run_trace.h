// A finished run as a trace: for tools that read traces, and for replaying what was simulated.
#pragma once

#include <filesystem>

#include "traces/trace.h"

namespace weft {

// Of the folder of `weft run`: each GPU is a rank with the operations of its program, which the folder's configuration
// makes again, when they ran (kernels.csv) and when the host issued them. Throws InputError for a folder whose rows are
// not those of its configuration.
[[nodiscard]] Trace trace_of_run(const std::filesystem::path& folder);

}  // namespace weft
