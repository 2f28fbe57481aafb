// What of a result goes into the table of a sweep.
#pragma once

#include <string>
#include <vector>

#include "cli/sweep/sweep_file.h"
#include "sim/json_reader.h"

namespace weft {

// The columns that every table has, with units in their names. Paths lead through result.json, or through "figures",
// what reports derive from it (cli/report/report_figures.h).
[[nodiscard]] const std::vector<SweepMetric>& headline_metrics();

// Why a sweep file may not ask for `path` ("expected ..., got ..."), or nothing.
[[nodiscard]] std::string fault_of_metric(const std::string& path);

// The column of a path that has no name: its keys joined by "_".
[[nodiscard]] std::string metric_name(const std::string& path);

// The values of `metrics` in `result`, null where it has none. An array, and what is in all of its elements, is a list
// unless max(), min(), sum() or mean() makes one number of it.
[[nodiscard]] std::vector<Json> metric_values(const std::vector<SweepMetric>& metrics, const Json& result);

}  // namespace weft
