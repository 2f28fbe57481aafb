#include "cli/output/result_writer.h"

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/output/counters_csv.h"
#include "cli/output/kernels_csv.h"
#include "cli/output/result_json.h"
#include "cli/output/timeline.h"
#include "cli/report/report_html.h"
#include "sim/atomic_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

void write_run_directory(const RunResult& result, const fs::path& dir, RunFiles files) {
  const Json document = result_to_json(result);
  std::vector<std::pair<const char*, std::string>> rendered{{"config.json", json_text(result.config)},
                                                            {"result.json", json_text(document)}};
  if (files == RunFiles::all) {
    rendered.emplace_back("kernels.csv", kernels_csv(result));
    rendered.emplace_back("counters.csv", counters_csv(result));
    rendered.emplace_back("timeline.pftrace", timeline_trace(result));
    rendered.emplace_back("report.html", run_report_html(document, result));
  }
  std::error_code error;
  const bool made = fs::create_directories(dir, error);
  if (error) throw InputError(dir.string(), "", "expected a folder that can be made, got: " + error.message());
  std::vector<fs::path> written;
  try {
    for (const auto& [name, bytes] : rendered) {
      write_file_atomically(dir / name, bytes);
      written.push_back(dir / name);
    }
  } catch (const InputError&) {
    std::error_code ignored;
    for (const fs::path& file : written) fs::remove(file, ignored);
    if (made) fs::remove(dir, ignored);
    throw;
  }
}

}  // namespace weft
