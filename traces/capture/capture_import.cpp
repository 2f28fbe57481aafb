#include "traces/capture/capture_import.h"

#include <algorithm>

#include "sim/error.h"
#include "traces/capture/captured_counters.h"
#include "traces/capture/captured_process.h"
#include "traces/capture/captured_run.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> capture_files(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.path().extension() == capture::kFileSuffix) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Trace import_capture_times(const std::vector<fs::path>& paths, std::vector<std::string>& notes) {
  const std::vector<fs::path> files = capture_files(paths);
  if (files.empty())
    throw MissingInput(paths.empty() ? "capture"
                                     : (paths.front() / (std::string("*") + capture::kFileSuffix)).string());
  CapturedRun run(notes);
  for (const fs::path& file : files) run.add(read_captured_process(file), files.size() == 1);
  return run.finish(paths.front().filename().string());
}

Trace import_capture(const std::vector<fs::path>& paths, std::vector<std::string>& notes) {
  Trace trace = import_capture_times(paths, notes);
  for (const fs::path& path : paths)
    if (const fs::path counters = path / capture::kCountersFolder; fs::is_directory(counters))
      join_counters(trace, counters, notes);
  return trace;
}

}  // namespace weft
