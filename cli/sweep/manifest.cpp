#include "cli/sweep/manifest.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "cli/config/config_paths.h"
#include "sim/error.h"

namespace weft {

namespace {
constexpr const char* kSchema = "weft-sweep/1";
}

Json manifest_to_json(const Manifest& manifest) {
  Json metrics = Json::array();
  for (const auto& metric : manifest.metrics) metrics.push_back({{"name", metric.name}, {"path", metric.path}});
  Json points = Json::array();
  for (const SweepPoint& point : manifest.points) {
    Json values = Json::object();
    for (std::size_t p = 0; p < manifest.paths.size(); ++p) values[manifest.paths[p]] = point.values[p];
    Json entry{{"point", points.size()},
               {"values", std::move(values)},
               {"seed", point.seed},
               {"repetition", point.repetition}};
    entry["key"] = point.key.empty() ? Json(nullptr) : Json(point.key);
    if (!point.reason.empty()) entry["reason"] = point.reason;
    points.push_back(std::move(entry));
  }
  return {{"schema", kSchema},
          {"version", version()},
          {"program_sha256", manifest.program_sha256},
          {"sweep_sha256", manifest.sweep_sha256},
          {"paths", manifest.paths},
          {"metrics", metrics},
          {"points", std::move(points)}};
}

Manifest manifest_from_json(const Json& document, const std::string& file) {
  JsonReader top(document, file);
  if (top.string("schema") != kSchema) {
    top.fail("schema", fmt::format("expected \"{}\", got {}", kSchema, describe(document["schema"])));
  }
  Manifest manifest;
  try {
    manifest.program_sha256 = document.at("program_sha256").get<std::string>();
    manifest.sweep_sha256 = document.at("sweep_sha256").get<std::string>();
    manifest.paths = document.at("paths").get<std::vector<std::string>>();
    for (const Json& metric : document.at("metrics")) {
      manifest.metrics.push_back({metric.at("name").get<std::string>(), metric.at("path").get<std::string>()});
    }
    for (const Json& entry : document.at("points")) {
      SweepPoint point;
      for (const auto& path : manifest.paths) point.values.push_back(entry.at("values").at(path));
      point.seed = entry.at("seed");
      point.repetition = entry.at("repetition").get<std::int64_t>();
      if (!entry.at("key").is_null()) point.key = entry.at("key").get<std::string>();
      if (point.key.empty()) point.reason = entry.at("reason").get<std::string>();
      manifest.points.push_back(std::move(point));
    }
  } catch (const Json::exception& e) {
    throw InputError(file, "", std::string("expected a manifest, got: ") + e.what());
  }
  return manifest;
}

std::vector<std::string> runs_of(const Manifest& manifest) {
  std::vector<std::string> keys;
  std::unordered_set<std::string> seen;
  for (const SweepPoint& point : manifest.points) {
    if (!point.key.empty() && seen.insert(point.key).second) keys.push_back(point.key);
  }
  return keys;
}

}  // namespace weft
