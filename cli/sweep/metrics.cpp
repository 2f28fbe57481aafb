#include "cli/sweep/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

#include "cli/report/report_figures.h"

namespace weft {

namespace {

struct MetricPath {
  std::string over;  // max, min, sum, mean, or nothing
  std::vector<std::string> keys;
};

MetricPath parsed(std::string_view path) {
  MetricPath metric;
  const std::size_t open = path.find('(');
  if (open != std::string_view::npos && path.ends_with(')')) {
    metric.over = path.substr(0, open);
    path = path.substr(open + 1, path.size() - open - 2);
  }
  for (;;) {
    const std::size_t dot = path.find('.');
    metric.keys.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return metric;
    path.remove_prefix(dot + 1);
  }
}

// What `keys` lead to from `at`: through an array, by the number of an element or into all of them.
void collect(const Json& at, const std::vector<std::string>& keys, std::size_t next, std::vector<Json>& found) {
  if (at.is_array()) {
    std::size_t index = 0;
    const std::string digits = next < keys.size() ? keys[next] : "";
    const auto number = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (!digits.empty() && number.ec == std::errc() && number.ptr == digits.data() + digits.size()) {
      if (index < at.size()) collect(at[index], keys, next + 1, found);
    } else {
      for (const Json& element : at) collect(element, keys, next, found);
    }
  } else if (next == keys.size()) {
    if (!at.is_null()) found.push_back(at);
  } else if (at.is_object()) {
    if (const auto member = at.find(keys[next]); member != at.end()) collect(*member, keys, next + 1, found);
  }
}

Json one_of_numbers(const std::string& over, const std::vector<Json>& found) {
  const auto less = [](const Json& a, const Json& b) { return a.get<double>() < b.get<double>(); };
  if (over == "max") return *std::max_element(found.begin(), found.end(), less);
  if (over == "min") return *std::min_element(found.begin(), found.end(), less);
  const bool whole = std::all_of(found.begin(), found.end(), [](const Json& one) { return one.is_number_integer(); });
  if (over == "sum" && whole) {
    return std::accumulate(found.begin(), found.end(), std::int64_t{0},
                           [](std::int64_t sum, const Json& one) { return sum + one.get<std::int64_t>(); });
  }
  const double sum = std::accumulate(found.begin(), found.end(), 0.0,
                                     [](double all, const Json& one) { return all + one.get<double>(); });
  return over == "sum" ? sum : sum / static_cast<double>(found.size());
}

Json value_of(const MetricPath& metric, const Json& result) {
  std::vector<Json> found;
  collect(result, metric.keys, 0, found);
  if (found.empty()) return nullptr;
  if (metric.over.empty()) return found.size() == 1 ? found.front() : Json(found);
  const bool numbers = std::all_of(found.begin(), found.end(), [](const Json& one) { return one.is_number(); });
  return numbers ? one_of_numbers(metric.over, found) : Json(nullptr);
}

}  // namespace

const std::vector<SweepMetric>& headline_metrics() {
  static const std::vector<SweepMetric> metrics{{"iteration_time_s", "iteration.time_s"},
                                                {"forward_s", "iteration.forward_s"},
                                                {"backward_s", "iteration.backward_s"},
                                                {"backward_isolated_s", "iteration.backward_isolated_s"},
                                                {"backward_slowdown", "iteration.backward_slowdown"},
                                                {"optimizer_s", "iteration.optimizer_s"},
                                                {"communication_s", "iteration.communication_s"},
                                                {"communication_exposed_s", "iteration.communication_exposed_s"},
                                                {"communication_overlapped_s", "iteration.communication_overlapped_s"},
                                                {"idle_s", "iteration.idle_s"},
                                                {"slowdown_compute_units_s", "slowdown_by_cause.compute_units"},
                                                {"slowdown_hbm_s", "slowdown_by_cause.hbm"},
                                                {"slowdown_cache_s", "slowdown_by_cause.cache"},
                                                {"slowdown_links_s", "slowdown_by_cause.links"},
                                                {"samples_per_s", "throughput.samples_per_s"},
                                                {"tokens_per_s", "throughput.tokens_per_s"},
                                                {"scaling_efficiency", "throughput.scaling_efficiency"},
                                                {"busbw_GBps", "figures.busbw_GBps"},
                                                {"peak_memory_bytes", "max(gpus.peak_memory_bytes)"},
                                                {"hbm_bytes", "figures.hbm_bytes"},
                                                {"hbm_communication_bytes", "figures.hbm_communication_bytes"},
                                                {"link_busy_fraction", "max(links.busy_fraction)"},
                                                {"table_high_water_bytes", "max(switches.table_high_water_bytes)"},
                                                {"table_stall_s", "sum(switches.table_stall_s)"}};
  return metrics;
}

std::string fault_of_metric(const std::string& path) {
  const MetricPath metric = parsed(path);
  const bool empty = std::any_of(metric.keys.begin(), metric.keys.end(), [](const std::string& key) {
    return key.find_first_of("()") != key.npos || key.empty();
  });
  const std::vector<std::string> overs{"", "max", "min", "sum", "mean"};
  if (empty || std::find(overs.begin(), overs.end(), metric.over) == overs.end()) {
    return fmt::format("expected keys joined by dots, or max, min, sum or mean of them, got \"{}\"", path);
  }
  const std::vector<std::string> known{"config",
                                       "config_sha256",
                                       "status",
                                       "out_of_memory",
                                       "iteration",
                                       "throughput",
                                       "collectives",
                                       "gpus",
                                       "links",
                                       "switches",
                                       "functional",
                                       "figures",
                                       "notes",
                                       "engine",
                                       "slowdown_by_cause",
                                       "slowdown_by_phase",
                                       "trace_sha256"};
  const std::string& first = metric.keys.front();
  if (std::find(known.begin(), known.end(), first) == known.end()) {
    const auto near = nearest(first, known);
    return fmt::format("expected a path of result.json, got \"{}\"{}", path,
                       near ? fmt::format("; the nearest is \"{}\"", *near) : "");
  }
  // The table of equal sweeps is equal.
  const std::vector<std::string> of_the_machine{"wall_s", "threads", "peak_rss_bytes"};
  const bool varies = first == "engine" &&
                      (metric.keys.size() < 2 ||
                       std::find(of_the_machine.begin(), of_the_machine.end(), metric.keys[1]) != of_the_machine.end());
  return varies ? fmt::format("expected what equal runs have in common, got \"{}\"", path) : "";
}

std::string metric_name(const std::string& path) {
  const MetricPath metric = parsed(path);
  std::string name = metric.over;
  for (const std::string& key : metric.keys) name += (name.empty() ? "" : "_") + key;
  return name;
}

std::vector<Json> metric_values(const std::vector<SweepMetric>& metrics, const Json& result) {
  const Json derived{{"figures", figures_json(figures_of(result))}};
  std::vector<Json> values;
  values.reserve(metrics.size());
  for (const SweepMetric& metric : metrics) {
    const MetricPath path = parsed(metric.path);
    values.push_back(value_of(path, path.keys.front() == "figures" ? derived : result));
  }
  return values;
}

}  // namespace weft
