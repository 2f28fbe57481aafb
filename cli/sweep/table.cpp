#include "cli/sweep/table.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cli/sweep/metrics.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

struct Outcome {
  std::string status, reason;
  std::vector<Json> metrics;
};

std::vector<SweepMetric> all_metrics(const std::vector<SweepMetric>& asked) {
  std::vector<SweepMetric> metrics = headline_metrics();
  metrics.insert(metrics.end(), asked.begin(), asked.end());
  return metrics;
}

std::string reason_of(const Json& result) {
  const auto memory = result.find("out_of_memory");
  if (memory == result.end() || memory->is_null()) return "";
  return "GPU " + memory->at("gpu").dump() + " lacks " + memory->at("bytes_over").dump() + " bytes at " +
         memory->at("at").get<std::string>();
}

Outcome outcome_of(const std::string& key, const RunStore& store, const std::vector<SweepMetric>& metrics) {
  if (store.done(key)) {
    const auto file = store.run_path(key) / "result.json";
    const Json result = parse_json(read_file(file), file.string());
    return {result.at("status").get<std::string>(), reason_of(result), metric_values(metrics, result)};
  }
  const auto failure = store.failure(key);
  const std::vector<Json> none(metrics.size());
  return failure ? Outcome{failure->status, failure->reason, none} : Outcome{"pending", "", none};
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::vector<std::string> table_columns(const std::vector<std::string>& paths, const std::vector<SweepMetric>& metrics) {
  std::vector<std::string> columns{"point"};
  columns.insert(columns.end(), paths.begin(), paths.end());
  columns.insert(columns.end(), {"seed", "repetition", "status", "reason"});
  for (const SweepMetric& metric : all_metrics(metrics)) columns.push_back(metric.name);
  return columns;
}

SweepTable sweep_table(const Manifest& manifest, const RunStore& store) {
  SweepTable table;
  table.columns = table_columns(manifest.paths, manifest.metrics);
  const std::vector<SweepMetric> metrics = all_metrics(manifest.metrics);
  std::unordered_map<std::string, Outcome> outcomes;
  for (const SweepPoint& point : manifest.points) {
    auto found = outcomes.find(point.key);
    if (point.key.empty() || found == outcomes.end()) {
      Outcome outcome = point.key.empty() ? Outcome{"failed", point.reason, std::vector<Json>(metrics.size())}
                                          : outcome_of(point.key, store, metrics);
      found = outcomes.insert_or_assign(point.key, std::move(outcome)).first;
    }
    const Outcome& outcome = found->second;
    table.failed += outcome.status == "failed" || outcome.status == "timeout" ? 1 : 0;
    table.pending += outcome.status == "pending" ? 1 : 0;
    std::vector<Json> row{table.rows.size()};
    row.insert(row.end(), point.values.begin(), point.values.end());
    row.insert(row.end(), {point.seed, point.repetition, outcome.status,
                           outcome.reason.empty() ? Json(nullptr) : Json(outcome.reason)});
    row.insert(row.end(), outcome.metrics.begin(), outcome.metrics.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string table_csv(const SweepTable& table) {
  std::string text;
  const auto add_line = [&](const auto& fields) {
    for (const auto& field : fields) {
      text += csv_field(field);
      text += ',';
    }
    text.back() = '\n';
  };
  add_line(table.columns);
  for (const auto& row : table.rows) add_line(row);
  return text;
}

}  // namespace weft
