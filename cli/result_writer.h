// The folder of one run.
#pragma once

#include <filesystem>

#include "cli/result.h"

namespace weft {

// Writes config.json, result.json, kernels.csv, timeline.pftrace and report.html to `dir`, which is made when missing.
// Everything is rendered before the first file is touched and each file is replaced whole. Throws InputError naming the
// file that cannot be written; then the files this call wrote, and the folder if it made it, are gone again.
void write_run_directory(const RunResult& result, const std::filesystem::path& dir);

}  // namespace weft
