// Imports execution traces of PyTorch together with profiles of the same ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// For each rank an execution trace and a Kineto file, in any order: they belong together by their process, and where
// that does not tell them apart by their order. The trace is that of the Kineto files, with what the execution traces
// add (ExecutionJoin). `notes` says how much that was.
//
// Throws MissingInput and InputError: an execution trace without a Kineto file or the reverse, two that are not of one
// process, and what import_kineto refuses.
[[nodiscard]] Trace import_execution_traces(const std::vector<std::filesystem::path>& files,
                                            std::vector<std::string>& notes);

}  // namespace weft
