#include "cli/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "cli/config/system_of.h"
#include "cli/sweep/metrics.h"
#include "cli/sweep/table.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxPoints = 1000000;  // more is a slip, and a table that nobody reads

void read_base(JsonReader& top, const fs::path& file, SweepFile& sweep) {
  if (!top.has("base")) top.fail("base", "expected a configuration or the name of its file, got nothing");
  const Json& base = top.value()["base"];
  if (base.is_string()) {
    sweep.base_file = fs::absolute(file.parent_path() / base.get<std::string>()).lexically_normal();
    sweep.base = load_configuration(sweep.base_file);
    return;
  }
  const JsonReader written = top.object("base");
  if (base.contains("include")) {
    written.fail("include",
                 "expected none here (\"base\" may be the name of a file), got " + describe(base["include"]));
  }
  sweep.base = base;
  sweep.base_file = fs::absolute(file);
}

// An array of values, or an object of them by label.
SweepAxis read_axis(const JsonReader& axes, const std::string& path, const Json& written) {
  const bool sets_a_key = !path.empty() && path.front() != '.' && path.back() != '.' && path.find("..") == path.npos;
  if (!sets_a_key) axes.fail(path, fmt::format("expected keys joined by dots, got \"{}\"", path));
  if (path == "seed") axes.fail(path, "expected the key \"seeds\" beside \"grid\", got a path");
  if (path == "threads") axes.fail(path, "expected a path that results depend on, got \"threads\"");
  if ((!written.is_array() && !written.is_object()) || written.empty()) {
    axes.fail(path, "expected an array of values or an object of values by label, got " + describe(written));
  }
  SweepAxis axis{path, {}, {}};
  for (const auto& item : written.items()) {
    axis.values.push_back(item.value());
    axis.shown.push_back(written.is_object() ? Json(item.key()) : item.value());
  }
  return axis;
}

void read_grid(JsonReader& top, SweepFile& sweep) {
  const auto grid = top.optional_object("grid");
  if (!grid) return;
  for (const auto& item : grid->value().items()) {
    sweep.axes.push_back({read_axis(*grid, item.key(), item.value())});
  }
}

void read_zip_object(const JsonReader& zip, SweepFile& sweep) {
  ZippedAxes together;
  for (const auto& item : zip.value().items()) {
    together.push_back(read_axis(zip, item.key(), item.value()));
    const std::size_t first = together.front().values.size(), own = together.back().values.size();
    if (own != first)
      zip.fail(item.key(), fmt::format("expected {} values, as many as of the first path, got {}", first, own));
  }
  if (!together.empty()) sweep.axes.push_back(std::move(together));
}

void read_zip(JsonReader& top, SweepFile& sweep) {
  if (!top.has("zip")) return;
  if (top.value()["zip"].is_array()) {
    for (const JsonReader& zip : top.objects("zip")) read_zip_object(zip, sweep);
  } else {
    read_zip_object(top.object("zip"), sweep);
  }
}

// SQL does not tell "A" from "a".
void refuse_repeated_columns(const JsonReader& top, const SweepFile& sweep) {
  std::vector<std::string> paths;
  for (const auto& together : sweep.axes) {
    for (const auto& axis : together) paths.push_back(axis.path);
  }
  std::set<std::string> seen;
  for (std::string column : table_columns(paths, sweep.metrics)) {
    std::transform(column.begin(), column.end(), column.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!seen.insert(column).second) {
      top.fail("", fmt::format("expected columns with names of their own, got \"{}\" twice", column));
    }
  }
}

std::vector<std::string> read_where(JsonReader& top) {
  if (!top.has("where")) return {};
  const Json& where = top.value()["where"];
  if (where.is_string()) return {where.get<std::string>()};
  const bool strings =
      where.is_array() && std::all_of(where.begin(), where.end(), [](const Json& one) { return one.is_string(); });
  if (!strings) top.fail("where", "expected a condition or an array of them, got " + describe(where));
  return where.get<std::vector<std::string>>();
}

void read_seeds(JsonReader& top, SweepFile& sweep) {
  sweep.repetitions = top.integer_or("repetitions", 1, 1000000, 1);
  if (!top.has("seeds")) return;
  const Json& seeds = top.value()["seeds"];
  const bool good = seeds.is_array() && !seeds.empty() && std::all_of(seeds.begin(), seeds.end(), [](const Json& one) {
                      return one.is_number_integer() && one.get<std::int64_t>() >= 0;
                    });
  if (!good) top.fail("seeds", "expected an array of integers from 0, got " + describe(seeds));
  sweep.seeds = seeds.get<std::vector<std::int64_t>>();
}

void read_metrics(JsonReader& top, SweepFile& sweep) {
  if (!top.has("metrics")) return;
  const Json& metrics = top.value()["metrics"];
  if (!metrics.is_array() && !metrics.is_object()) {
    top.fail("metrics",
             "expected an array of paths of a result or an object of them by name, got " + describe(metrics));
  }
  for (const auto& item : metrics.items()) {
    const JsonReader place(metrics.is_object() ? metrics : Json::object(), top.file(), "/metrics");
    if (!item.value().is_string()) place.fail(item.key(), "expected a path of a result, got " + describe(item.value()));
    const std::string path = item.value().get<std::string>();
    if (const std::string wrong = fault_of_metric(path); !wrong.empty()) place.fail(item.key(), wrong);
    sweep.metrics.push_back({metrics.is_object() ? item.key() : metric_name(path), path});
  }
}

}  // namespace

SweepFile read_sweep_file(const fs::path& file) {
  const Json document = load_config(file);
  JsonReader top(document, file.string());
  for (const char* key : {"base", "grid", "zip", "where", "seeds", "repetitions", "metrics"}) {
    static_cast<void>(top.has(key));
  }
  top.finish();

  SweepFile sweep;
  read_base(top, file, sweep);
  read_grid(top, sweep);
  read_zip(top, sweep);
  sweep.where = read_where(top);
  read_seeds(top, sweep);
  read_metrics(top, sweep);
  refuse_repeated_columns(top, sweep);
  double points =
      static_cast<double>(std::max<std::size_t>(1, sweep.seeds.size())) * static_cast<double>(sweep.repetitions);
  for (const auto& together : sweep.axes) points *= static_cast<double>(together.front().values.size());
  if (points > kMaxPoints) top.fail("", fmt::format("expected at most {} points, got {:.0f}", kMaxPoints, points));
  return sweep;
}

}  // namespace weft
