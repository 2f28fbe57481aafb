// Whether what a run holds fits into the GPUs' memory.
#pragma once

#include <vector>

#include "cli/config/system_config.h"
#include "cli/run/result.h"

namespace weft {

// The communication library's buffers on one GPU, at the end of its memory.
[[nodiscard]] std::int64_t library_buffer_bytes(const RunConfig& config);

// What the programs hold at most, against what a GPU has, into the GPUs of `result`; what does not fit is its verdict.
// The buffers of the communication library and of blocks beside the workload count too. Nothing is said of programs
// without memory events (traces).
void check_memory(const RunConfig& config, const std::vector<Program>& programs, RunResult& result);

}  // namespace weft
