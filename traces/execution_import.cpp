#include "traces/execution_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sim/error.h"
#include "traces/execution_join.h"
#include "traces/execution_trace.h"
#include "traces/kineto_run.h"

namespace weft {
namespace {

struct TraceFile {
  std::filesystem::path path;
  std::int64_t process;
  bool taken = false;
};

// The process of most profiles is that of all their operators.
std::int64_t process_of(const KinetoFile& file) {
  for (const KinetoEvent& event : file.events)
    if (event.category == KinetoCategory::cpu_operator) return event.device;
  return -1;
}

// The only one left of this process, else the next one left.
TraceFile& partner(std::vector<TraceFile>& traces, std::int64_t process) {
  const auto fits = [&](const TraceFile& t) { return !t.taken && t.process == process && process >= 0; };
  const auto left = [](const TraceFile& t) { return !t.taken; };
  const bool one = std::count_if(traces.begin(), traces.end(), fits) == 1;
  return one ? *std::find_if(traces.begin(), traces.end(), fits) : *std::find_if(traces.begin(), traces.end(), left);
}

}  // namespace

Trace import_execution_traces(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes) {
  if (files.empty()) throw InputError("expected an execution trace and a Kineto file, got none");
  std::vector<TraceFile> traces;
  std::vector<std::filesystem::path> profiles;
  for (const std::filesystem::path& file : files) {
    if (is_execution_trace(file))
      traces.push_back({file, read_execution_trace(file).process});
    else
      profiles.push_back(file);
  }
  if (traces.size() != profiles.size())
    throw InputError(
        (traces.size() > profiles.size() ? traces.front().path : profiles.front()).string(), "",
        fmt::format("expected for each rank an execution trace, which has no times, and what PyTorch's profiler wrote "
                    "(\"traceEvents\"), got {} of the former and {} of the latter",
                    traces.size(), profiles.size()));
  KinetoRun run(notes);
  for (const std::filesystem::path& profile : profiles) {
    KinetoFile file = read_kineto(profile);
    TraceFile& own = partner(traces, process_of(file));
    own.taken = true;
    const ExecutionTrace trace = read_execution_trace(own.path);
    const ExecutionJoin join(trace, file);
    if (join.joined() < join.operators())
      notes.push_back(fmt::format("{}: {} of {} operators are in {}", profile.string(), join.joined(), join.operators(),
                                  own.path.string()));
    run.add(file, profiles.size() == 1, &join);
  }
  return run.finish(profiles.front().filename().string());
}

}  // namespace weft
