// The page of what a folder holds: a run, a comparison or a sweep, from the files that weft wrote there.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/result.h"

namespace weft {

enum class FolderKind { run, comparison, sweep };

// By its result.json, comparison.json or results.csv. Throws InputError when it has none, MissingInput without folder.
[[nodiscard]] FolderKind folder_kind(const std::filesystem::path& folder);

// Throws MissingInput, or InputError for a file that is no JSON.
[[nodiscard]] Json read_document(const std::filesystem::path& file);

// Label and result.json document of each run of a comparison. Throws InputError when its comparison.json is another.
[[nodiscard]] std::vector<std::pair<std::string, Json>> read_comparison(const std::filesystem::path& folder);

// Operations and counters of a run's kernels.csv and counters.csv (which an older run does not have).
[[nodiscard]] RunResult read_run_records(const std::filesystem::path& folder);

// The page, with links as they are from `page_folder`.
[[nodiscard]] std::string folder_report_html(const std::filesystem::path& folder,
                                             const std::filesystem::path& page_folder);

}  // namespace weft
