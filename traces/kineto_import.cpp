#include "traces/kineto_import.h"

#include "sim/error.h"
#include "traces/kineto_run.h"

namespace weft {

Trace import_kineto(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes) {
  if (paths.empty()) throw InputError("expected at least one Kineto file, got none");
  KinetoRun run(notes);
  // One after another, so that only one file's events are in memory.
  for (const std::filesystem::path& path : paths) run.add(read_kineto(path), paths.size() == 1);
  return run.finish(paths.front().filename().string());
}

}  // namespace weft
