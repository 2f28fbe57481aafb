// Brings what Nsight Systems recorded into weft's trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace weft {

// SQLite exports of one run. Each GPU that a process uses is a rank: its number is MPI's, else that of NCCL's largest
// communicator, else the order of files, processes and GPUs. `notes` says what was not recorded, missing or moved.
//
// Throws MissingInput and InputError, naming file and table: no export, no operation on a GPU, columns or values that
// are not as NVIDIA describes them, damage.
[[nodiscard]] Trace import_nsys(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes);

}  // namespace weft
