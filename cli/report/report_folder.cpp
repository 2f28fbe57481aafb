#include "cli/report/report_folder.h"

#include "cli/output/counters_csv.h"
#include "cli/output/kernels_csv_reader.h"
#include "cli/report/report_html.h"
#include "cli/report/report_sweep.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

Json read_document(const fs::path& file) { return parse_json(read_file(file), file.string()); }

std::vector<std::pair<std::string, Json>> read_comparison(const fs::path& folder) {
  const fs::path file = folder / "comparison.json";
  const Json comparison = read_document(file);
  std::vector<std::pair<std::string, Json>> results;
  try {
    for (const Json& row : comparison.at("rows")) {
      results.emplace_back(row.at("label").get<std::string>(), row.at("result"));
    }
  } catch (const Json::exception&) {
    throw InputError(file.string(), "/rows", "expected a list of { label, result }, got something else");
  }
  return results;
}

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
      return run_report_html(read_document(folder / "result.json"), read_run_records(folder));
    case FolderKind::comparison: {
      const auto results = read_comparison(folder);
      std::vector<fs::path> run_folders;
      for (const auto& result : results) run_folders.push_back(folder / result.first);
      return comparison_report_html(results, run_folders, page_folder);
    }
    case FolderKind::sweep:
      return sweep_report_html(sweep_report_data(folder, page_folder));
  }
  throw InternalError("a folder of no kind");
}

}  // namespace weft
