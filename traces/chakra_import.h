// Imports Chakra execution traces, one file a rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// Files are the ranks of one run: NAME.RANK.et (or .json, and packed), where all of several are called so, else in the
// order given. What weft wrote itself (weft export chakra) comes back as it was.
// Any other trace has durations and dependencies, but no times: it is played through once, a host thread's nodes one
// after another, a stream's nodes likewise, and each as soon as what it depends on has ended (docs/formats.md).
// Dependencies on nodes that are not there are left out; `notes` says how many, and what else was not as expected.
//
// Throws MissingInput and InputError: no Chakra trace, an id twice, dependencies in a cycle, no node on the GPU.
[[nodiscard]] Trace import_chakra(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes);

}  // namespace weft
