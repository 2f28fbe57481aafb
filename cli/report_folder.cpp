#include "cli/report_folder.h"

#include <utility>
#include <vector>

#include "cli/counters_csv.h"
#include "cli/kernels_csv_reader.h"
#include "cli/report_html.h"
#include "cli/report_sweep.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

Json document_in(const fs::path& file) { return parse_json(read_file(file), file.string()); }

std::string comparison_html(const fs::path& folder, const fs::path& page_folder) {
  const fs::path file = folder / "comparison.json";
  const Json comparison = document_in(file);
  std::vector<std::pair<std::string, Json>> results;
  std::vector<fs::path> run_folders;
  try {
    for (const Json& row : comparison.at("rows")) {
      results.emplace_back(row.at("label").get<std::string>(), row.at("result"));
      run_folders.push_back(folder / results.back().first);
    }
  } catch (const Json::exception&) {
    throw InputError(file.string(), "/rows", "expected a list of { label, result }, got something else");
  }
  return comparison_report_html(results, run_folders, page_folder);
}

}  // namespace

FolderKind folder_kind(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw MissingInput(folder.string());
  if (fs::exists(folder / "result.json")) return FolderKind::run;
  if (fs::exists(folder / "comparison.json")) return FolderKind::comparison;
  if (fs::exists(folder / "results.csv")) return FolderKind::sweep;
  throw InputError(folder.string(), "",
                   "expected the folder of a run (result.json), a comparison (comparison.json) or a sweep "
                   "(results.csv), got another");
}

RunResult read_run_records(const fs::path& folder) {
  RunResult records;
  records.operations = read_kernels_csv(folder / "kernels.csv");
  if (fs::exists(folder / "counters.csv")) records.counters = read_counters_csv(folder / "counters.csv");
  return records;
}

std::string folder_report_html(const fs::path& folder, const fs::path& page_folder) {
  switch (folder_kind(folder)) {
    case FolderKind::run:
      return run_report_html(document_in(folder / "result.json"), read_run_records(folder));
    case FolderKind::comparison:
      return comparison_html(folder, page_folder);
    case FolderKind::sweep:
      return sweep_report_html(sweep_report_data(folder, page_folder));
  }
  throw InternalError("a folder of no kind");
}

}  // namespace weft
