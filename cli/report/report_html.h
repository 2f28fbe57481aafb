// report.html: self-contained pages that open from disk without a network.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/result.h"

namespace weft {

// The page of one run: verdict, headline figures, timeline, causes, memory, links, collectives, kernels that lost most.
// The timeline holds whole GPUs up to 250 thousand operations and says so when it leaves some out.
// `document` is its result.json; of `records`, operations and counters are shown.
[[nodiscard]] std::string run_report_html(const Json& document, const RunResult& records);

// The page of several runs, (label, result.json document) each, with links to the report.html in run_dirs (one a
// result, in the same order; empty: no links) as they are from page_folder, so that the folder can be moved and sent as
// a whole. Throws InputError when the counts differ or a document is another.
[[nodiscard]] std::string comparison_report_html(const std::vector<std::pair<std::string, Json>>& results,
                                                 const std::vector<std::filesystem::path>& run_dirs,
                                                 const std::filesystem::path& page_folder);

// The page of a sweep: curves, heat map, Pareto front, filters, points. `data` as sweep_report_data makes it.
[[nodiscard]] std::string sweep_report_html(const Json& data);

}  // namespace weft
