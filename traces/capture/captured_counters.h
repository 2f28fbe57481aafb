// Joins the second pass of a capture, which counts kernels, to the trace of the first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// `folder` holds the files of the second pass. A process is the rank that its launcher said, else that of NCCL's
// largest communicator; one process alone, with as many GPUs as the trace has ranks, is all of them in order. The n-th
// launch of a kernel (name, grid and block) in the one pass is the n-th in the other; kernels that were not launched as
// often in both get no counters. `notes` says what differs, what was lost, and what the library told.
void join_counters(Trace& trace, const std::filesystem::path& folder, std::vector<std::string>& notes);

}  // namespace weft
