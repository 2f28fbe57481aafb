// The folder of one run.
#pragma once

#include <filesystem>

#include "cli/run/result.h"

namespace weft {

enum class RunFiles {
  all,    // config.json, result.json, kernels.csv, counters.csv, timeline.pftrace and report.html
  result  // the first two: the configuration runs again to the others
};

// Writes `files` to `dir`, which is made when missing.
// Everything is rendered before the first file is touched and each file is replaced whole. Throws InputError naming the
// file that cannot be written; then the files this call wrote, and the folder if it made it, are gone again.
void write_run_directory(const RunResult& result, const std::filesystem::path& dir, RunFiles files = RunFiles::all);

}  // namespace weft
