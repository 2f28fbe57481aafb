// Whether what a run holds fits into the GPUs' memory.
#pragma once

#include <vector>

#include "cli/result.h"
#include "cli/system_config.h"

namespace weft {

// What the programs hold at most, against what a GPU has, into the GPUs of `result`; what does not fit is its verdict.
// The communication library's buffers count too. Nothing is said of programs without memory events (traces).
void check_memory(const RunConfig& config, const std::vector<Program>& programs, RunResult& result);

}  // namespace weft
