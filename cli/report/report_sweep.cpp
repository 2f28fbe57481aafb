#include "cli/report/report_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/csv_reader.h"
#include "cli/report/report_units.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct Column {
  std::string name;
  std::vector<std::string> written;
};

// A table by columns: those before and after `status` are parameters and metrics.
struct Points {
  std::vector<std::string> id, status, reason;
  std::vector<Column> parameters, metrics;
};

Points read_points(const fs::path& file) {
  CsvReader csv(file);
  Points points;
  const auto& header = csv.header();
  for (const char* needed : {"point", "status", "reason"}) {
    if (!csv.has(needed)) {
      throw InputError(file.string(), "line 1", fmt::format("expected a column \"{}\" of a sweep, got none", needed));
    }
  }
  std::vector<std::pair<std::size_t, std::vector<std::string>*>> targets;
  bool after_status = false;
  points.parameters.reserve(header.size());  // targets point into them
  points.metrics.reserve(header.size());
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "point") {
      targets.emplace_back(i, &points.id);
    } else if (header[i] == "status") {
      after_status = true;
      targets.emplace_back(i, &points.status);
    } else if (header[i] == "reason") {
      targets.emplace_back(i, &points.reason);
    } else {
      auto& columns = after_status ? points.metrics : points.parameters;
      columns.push_back({header[i], {}});
      targets.emplace_back(i, &columns.back().written);
    }
  }
  while (csv.next_line()) {
    for (const auto& [column, values] : targets) values->push_back(csv.text(column));
  }
  return points;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Json values_of(const Column& column) {
  const bool numbers = std::all_of(column.written.begin(), column.written.end(),
                                   [](const std::string& text) { return text.empty() || number_in(text); });
  Json values = Json::array();
  for (const std::string& text : column.written) {
    if (text.empty()) {
      values.push_back(nullptr);
    } else {
      values.push_back(numbers ? Json(*number_in(text)) : Json(text));
    }
  }
  return values;
}

bool ends_with(const std::string& name, std::string_view end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// A metric's value as people read it, by the unit in its name.
std::string metric_text(const std::string& metric, double value) {
  if (ends_with(metric, "_GBps")) return bandwidth_text(value);
  if (ends_with(metric, "_bytes")) return bytes_text(value);
  if (ends_with(metric, "_s") && !ends_with(metric, "per_s")) return time_text(value);
  return number_text(value);
}

// Rates and efficiencies are better the higher they are; times, sizes and slowdowns the lower.
int better(const std::string& metric) {
  return ends_with(metric, "GBps") || ends_with(metric, "per_s") || ends_with(metric, "efficiency") ? 1 : -1;
}

Json manifest_of(const fs::path& folder) {
  const fs::path file = folder / "manifest.json";
  return fs::exists(file) ? parse_json(read_file(file), file.string()) : Json::object();
}

// Metrics that the sweep names stand before those that every table has.
void named_first(std::vector<Column>& metrics, const Json& manifest) {
  std::set<std::string> named;
  for (const Json& metric : manifest.value("metrics", Json::array())) named.insert(metric.value("name", ""));
  std::stable_partition(metrics.begin(), metrics.end(),
                        [&](const Column& column) { return named.find(column.name) != named.end(); });
}

// The key of each point's run, which names its folder; empty for a point that cannot run.
std::vector<std::string> run_keys(const Points& points, const Json& manifest) {
  std::vector<std::string> keys(points.id.size());
  const Json listed = manifest.value("points", Json::array());
  for (std::size_t i = 0; i < std::min(keys.size(), listed.size()); ++i) {
    const Json key = listed[i].value("key", Json(nullptr));
    if (key.is_string()) keys[i] = key.get<std::string>();
  }
  return keys;
}

// The page of each point, or else its figures; null for a point that has neither.
Json point_links(const fs::path& folder, const fs::path& page_folder, const std::vector<std::string>& keys) {
  Json links = Json::array();
  const fs::path from = fs::absolute(page_folder);
  for (const std::string& key : keys) {
    const fs::path run = fs::absolute(folder) / "points" / key;
    Json link = nullptr;
    for (const char* file : {"report.html", "result.json"}) {
      if (key.empty() || !fs::exists(run / file)) continue;
      link = (run / file).lexically_relative(from).generic_string();
      break;
    }
    links.push_back(std::move(link));
  }
  return links;
}

std::string described(const Points& points, std::size_t row) {
  std::string text;
  for (const Column& column : points.parameters) {
    const std::set<std::string> distinct(column.written.begin(), column.written.end());
    if (distinct.size() > 1) text += (text.empty() ? "" : ", ") + column.name + " " + column.written[row];
  }
  return text;
}

std::string sweep_verdict(const Points& points) {
  const auto ok = std::count(points.status.begin(), points.status.end(), "ok");
  std::string text = static_cast<std::size_t>(ok) == points.id.size()
                         ? fmt::format("{} points, all of them finished.", ok)
                         : fmt::format("{} points, {} of them finished.", points.id.size(), ok);
  if (points.metrics.empty()) return text;
  const Column& metric = points.metrics.front();
  std::optional<std::size_t> best, worst;
  const auto value = [&](std::size_t row) { return *number_in(metric.written[row]) * better(metric.name); };
  for (std::size_t row = 0; row < points.id.size(); ++row) {
    if (!number_in(metric.written[row])) continue;
    if (!best || value(row) > value(*best)) best = row;
    if (!worst || value(row) < value(*worst)) worst = row;
  }
  if (!best || best == worst) return text;
  const auto shown = [&](std::size_t row) { return metric_text(metric.name, *number_in(metric.written[row])); };
  return text + fmt::format(" The best {} is {}, with {}; the worst {}, with {}.", metric.name, shown(*best),
                            described(points, *best), shown(*worst), described(points, *worst));
}

}  // namespace

Json sweep_report_data(const fs::path& folder, const fs::path& page_folder) {
  Points points = read_points(folder / "results.csv");
  const Json manifest = manifest_of(folder);
  named_first(points.metrics, manifest);
  Json parameters = Json::array(), metrics = Json::array();
  std::string swept;
  for (const Column& column : points.parameters) {
    const std::set<std::string> distinct(column.written.begin(), column.written.end());
    if (distinct.size() > 1) swept += (swept.empty() ? "" : ", ") + column.name;
    parameters.push_back({{"name", column.name}, {"values", values_of(column)}});
  }
  for (const Column& column : points.metrics) {
    metrics.push_back({{"name", column.name}, {"better", better(column.name)}, {"values", values_of(column)}});
  }
  return {{"title", "sweep over " + (swept.empty() ? "nothing" : swept)},
          {"verdict", sweep_verdict(points)},
          {"parameters", parameters},
          {"metrics", metrics},
          {"points",
           {{"id", points.id},
            {"status", points.status},
            {"reason", points.reason},
            {"link", point_links(folder, page_folder, run_keys(points, manifest))}}}};
}

}  // namespace weft
