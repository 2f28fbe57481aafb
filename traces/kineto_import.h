// Imports what PyTorch's profiler writes (Kineto; Chrome trace JSON, gzip or not) for one or several ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// Several files are the ranks of one run: by "distributedInfo", else in the order given; their clocks are taken as they
// are. GPU operations are joined by correlation with the runtime call that launched them and the operators and
// annotations around it. Iterations are "ProfilerStep#N"; without any, one spans all. An operation launched before the
// recording began belongs to no iteration. What is inferred rather than recorded stands in docs/formats.md.
//
// Throws MissingInput and InputError: no gzip, no JSON, no Kineto trace, no GPU operation, negative or impossible
// times, a collective whose group does not exist, ranks that contradict each other.
[[nodiscard]] Trace import_kineto(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes);

}  // namespace weft
