// Joins the files of a captured run: one trace of all its ranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// `paths` are capture files, or folders of them. Ranks are what the launcher said, else what NCCL's largest
// communicator says, else the order of files. Processes that ran nothing on a GPU are left out. Clocks of ranks are
// moved so that collectives end together (traces/clock_alignment.h). `notes` says what was lost, missing or moved.
//
// Throws MissingInput and InputError: no file, no capture file, no operation on a GPU, two processes of one rank.
[[nodiscard]] Trace import_capture_times(const std::vector<std::filesystem::path>& paths,
                                         std::vector<std::string>& notes);

// The same, with the counters of a second pass (captured_counters.h) that the folders hold.
[[nodiscard]] Trace import_capture(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes);

}  // namespace weft
