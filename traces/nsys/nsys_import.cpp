#include "traces/nsys/nsys_import.h"

#include <memory>
#include <optional>

#include "sim/error.h"
#include "traces/capture/captured_run.h"
#include "traces/nsys/nsys_database.h"
#include "traces/nsys/nsys_process.h"

namespace weft {

Trace import_nsys(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes) {
  if (files.empty()) throw InputError("expected at least one export of Nsight Systems, got none");
  struct File {
    std::unique_ptr<NsysDatabase> database;
    std::vector<std::optional<std::int64_t>> processes;
  };
  std::vector<File> opened;
  std::size_t processes = 0;
  for (const std::filesystem::path& path : files) {
    File& file = opened.emplace_back();
    file.database = std::make_unique<NsysDatabase>(path);
    file.processes = nsys_processes(*file.database);
    processes += file.processes.size();
  }
  CapturedRun run(notes);
  // One process after another, so that only one's events are in memory.
  for (const File& file : opened)
    for (const std::optional<std::int64_t>& process : file.processes)
      run.add(read_nsys_process(*file.database, process), processes == 1);
  return run.finish(files.front().filename().string());
}

}  // namespace weft
