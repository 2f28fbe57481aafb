#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/report/report_pictures.h"
#include "sim/error.h"

namespace weft {

namespace {

struct PlottedColumn {
  std::string name;
  std::vector<Json> values;
  std::vector<Json> distinct;  // numbers ascending, text as it comes
  bool numeric = true;
  double better = -1;
};

std::vector<PlottedColumn> columns_of(const Json& listed) {
  std::vector<PlottedColumn> columns;
  for (const Json& one : listed) {
    PlottedColumn column{one.at("name").get<std::string>(), one.at("values").get<std::vector<Json>>(), {}};
    column.better = one.value("better", -1);
    for (const Json& value : column.values) {
      if (value.is_null()) continue;
      column.numeric = column.numeric && value.is_number();
      const bool known = std::find(column.distinct.begin(), column.distinct.end(), value) != column.distinct.end();
      if (!known && column.distinct.size() < 1000) column.distinct.push_back(value);
    }
    if (column.numeric) std::sort(column.distinct.begin(), column.distinct.end());
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : fmt::format("{}", value.get<double>());
}

FigureUnit unit_of(const std::string& name) {
  const auto ends = [&](std::string_view end) { return std::string_view(name).ends_with(end); };
  if (ends("GBps")) return FigureUnit::bandwidth;
  if (name.find("bytes") != std::string::npos) return FigureUnit::bytes;
  return ends("_s") && !ends("per_s") ? FigureUnit::seconds : FigureUnit::number;
}

// A wide range, or values that multiply.
bool wide(const PlottedColumn& column) {
  if (!column.numeric || column.distinct.size() < 2 || column.distinct[0].get<double>() <= 0) return false;
  const double least = column.distinct.front().get<double>(), most = column.distinct.back().get<double>();
  const double step = column.distinct[1].get<double>() / least;
  return most / least >= 30 || (column.distinct.size() > 2 &&
                                std::fabs(most / least / std::pow(step, column.distinct.size() - 1) - 1) < 1e-6);
}

FigureAxis axis_of(const PlottedColumn& column) { return {column.name, unit_of(column.name), wide(column)}; }

const PlottedColumn* chosen(const std::vector<PlottedColumn>& columns, const std::string& name) {
  for (const PlottedColumn& column : columns) {
    if (column.name == name) return &column;
  }
  std::string known;
  for (const PlottedColumn& column : columns) known += (known.empty() ? "" : ", ") + column.name;
  throw InputError("", "", "expected one of " + known + ", got " + name);
}

// The row with the best metric for each pair of values of x and of `by`; nothing of points without that metric.
using Cells = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;
Cells best_rows(const PlottedColumn& x, const PlottedColumn* by, const PlottedColumn& metric) {
  const auto place = [](const PlottedColumn& column, std::size_t row) {
    return static_cast<std::size_t>(std::find(column.distinct.begin(), column.distinct.end(), column.values[row]) -
                                    column.distinct.begin());
  };
  Cells cells;
  for (std::size_t row = 0; row < metric.values.size(); ++row) {
    if (!metric.values[row].is_number() || x.values[row].is_null()) continue;
    const auto [cell, added] = cells.try_emplace({by != nullptr ? place(*by, row) : 0, place(x, row)}, row);
    const double gain = metric.values[row].get<double>() - metric.values[cell->second].get<double>();
    if (!added && gain * metric.better > 0) cell->second = row;
  }
  return cells;
}

std::string series_name(const PlottedColumn* by, std::size_t i, const PlottedColumn& metric) {
  return by != nullptr ? by->name + " " + text_of(by->distinct[i]) : metric.name;
}

Figure curves(const PlottedColumn& x, const PlottedColumn* by, const PlottedColumn& metric) {
  Figure figure{"curves", metric.name + " over " + x.name, FigureKind::lines, axis_of(x), axis_of(metric)};
  figure.series.resize(by != nullptr ? by->distinct.size() : 1);
  for (std::size_t i = 0; i < figure.series.size(); ++i) figure.series[i].name = series_name(by, i, metric);
  for (const auto& [cell, row] : best_rows(x, by, metric)) {
    const auto position = static_cast<double>(cell.second);  // of text
    figure.series[cell.first].x.push_back(x.numeric ? x.values[row].get<double>() : position);
    figure.series[cell.first].y.push_back(metric.values[row].get<double>());
  }
  return figure;
}

Figure heat(const PlottedColumn& x, const PlottedColumn& by, const PlottedColumn& metric) {
  Figure figure{"heat",
                metric.name + " over " + x.name + " and " + by.name,
                FigureKind::heat,
                axis_of(x),
                {by.name, unit_of(metric.name), wide(metric)}};
  figure.cells = metric.name;
  for (const Json& value : x.distinct) figure.categories.push_back(text_of(value));
  for (const Json& value : by.distinct) {
    const std::vector<double> none(x.distinct.size(), std::numeric_limits<double>::quiet_NaN());
    figure.series.push_back({text_of(value), {}, none});
  }
  for (const auto& [cell, row] : best_rows(x, &by, metric)) {
    figure.series[cell.first].y[cell.second] = metric.values[row].get<double>();
  }
  return figure;
}

Figure pareto(const PlottedColumn& across, const PlottedColumn& up) {
  Figure figure{"pareto", "Pareto front of " + across.name + " and " + up.name, FigureKind::points, axis_of(across),
                axis_of(up)};
  figure.series = {{"others"}, {"Pareto front"}};
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < across.values.size(); ++row) {
    if (across.values[row].is_number() && up.values[row].is_number()) rows.push_back(row);
  }
  const auto gain = [](const PlottedColumn& column, std::size_t row) {
    return column.values[row].get<double>() * column.better;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(gain(across, a), gain(up, a)) > std::pair(gain(across, b), gain(up, b));
  });
  double best = -std::numeric_limits<double>::infinity();
  for (const std::size_t row : rows) {
    const bool on_front = gain(up, row) > best;
    best = std::max(best, gain(up, row));
    figure.series[on_front ? 1 : 0].x.push_back(across.values[row].get<double>());
    figure.series[on_front ? 1 : 0].y.push_back(up.values[row].get<double>());
  }
  return figure;
}

}  // namespace

std::vector<Figure> sweep_figures(const Json& data, const SweepChoice& choice) {
  std::vector<PlottedColumn> parameters = columns_of(data.at("parameters")), metrics = columns_of(data.at("metrics"));
  const auto constant = [](const PlottedColumn& column) { return column.distinct.size() < 2; };
  const auto no_numbers = [](const PlottedColumn& column) { return !column.numeric || column.distinct.empty(); };
  parameters.erase(std::remove_if(parameters.begin(), parameters.end(), constant), parameters.end());
  metrics.erase(std::remove_if(metrics.begin(), metrics.end(), no_numbers), metrics.end());
  if (parameters.empty() || metrics.empty()) return {};

  // As the page: over the finest number, a curve for each of what has few values.
  const auto finer = [](const PlottedColumn& a, const PlottedColumn& b) {
    return std::pair(a.numeric, a.distinct.size()) < std::pair(b.numeric, b.distinct.size());
  };
  const PlottedColumn* x =
      choice.x.empty() ? &*std::max_element(parameters.begin(), parameters.end(), finer) : chosen(parameters, choice.x);
  const PlottedColumn* by = choice.by.empty() ? nullptr : chosen(parameters, choice.by);
  for (const PlottedColumn& column : parameters) {
    if (!choice.by.empty() || &column == x || column.distinct.size() > 24) continue;
    if (by == nullptr || (by->numeric && !column.numeric)) by = &column;
  }
  const PlottedColumn* metric = choice.metric.empty() ? &metrics.front() : chosen(metrics, choice.metric);
  const PlottedColumn* against = nullptr;  // as the page: the first other one that varies
  for (const PlottedColumn& column : metrics) {
    if (against == nullptr && &column != metric && !constant(column)) against = &column;
  }
  if (!choice.against.empty()) against = chosen(metrics, choice.against);

  std::vector<Figure> figures{curves(*x, by, *metric)};
  if (by != nullptr && by != x) figures.push_back(heat(*x, *by, *metric));
  if (against != nullptr && against != metric) figures.push_back(pareto(*metric, *against));
  return figures;
}

}  // namespace weft
