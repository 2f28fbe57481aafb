// What the page of a sweep shows, from the sweep's folder.
#pragma once

#include <filesystem>

#include "sim/json_reader.h"

namespace weft {

// Of `folder`, with links as they are from `page_folder`:
// { title, verdict, parameters [ { name, values } ], metrics [ { name, better, values } ],
//   points { id, status, reason, link } }, each list with an entry a point; values are numbers, or text where one of
// them is none; null: empty. `better` is 1 where more is better, else -1. Metrics that the sweep names come first.
// Throws MissingInput without results.csv, InputError when it is none of a sweep.
[[nodiscard]] Json sweep_report_data(const std::filesystem::path& folder, const std::filesystem::path& page_folder);

}  // namespace weft
