#include "cli/output/kernels_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "cli/output/result_json.h"

namespace weft {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<const OperationRecord*> in_order_of_rows(const std::vector<OperationRecord>& operations) {
  std::vector<const OperationRecord*> rows;
  rows.reserve(operations.size());
  for (const OperationRecord& operation : operations) rows.push_back(&operation);
  std::stable_sort(rows.begin(), rows.end(), [](const OperationRecord* a, const OperationRecord* b) {
    return std::tuple(a->gpu, a->start_s, a->stream) < std::tuple(b->gpu, b->start_s, b->stream);
  });
  return rows;
}

std::string kernels_csv(const RunResult& result) {
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  std::string csv =
      "gpu,stream,name,phase,start_s,end_s,isolated_s,slowdown,iteration,op,kind,cause_compute_units_s,cause_hbm_s,"
      "cause_cache_s,cause_links_s,beside_waiting_s,beside_moving_s\n";
  for (const OperationRecord* row : in_order_of_rows(result.operations)) {
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", row->gpu,
                   row->stream, csv_field(row->name), to_string(row->phase), row->start_s, row->end_s,
                   number(row->isolated_s), number(slowdown(*row)), row->iteration, row->op,
                   row->communication ? "communication" : "compute", row->causes.compute_units, row->causes.hbm,
                   row->causes.cache, row->causes.links, row->beside_waiting_s, row->beside_moving_s);
  }
  return csv;
}

}  // namespace weft
