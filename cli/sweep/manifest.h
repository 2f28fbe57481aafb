// The points of a sweep, in order, as its folder's manifest.json lists them (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/sweep/sweep_file.h"
#include "sim/json_reader.h"

namespace weft {

struct SweepPoint {
  std::vector<Json> values;  // as shown, one a path
  Json seed;                 // null where the configuration cannot be read
  std::int64_t repetition = 0;
  std::string key;     // of its run, equal for equal points; empty where the configuration cannot be read
  std::string reason;  // why not
};

struct Manifest {
  std::string program_sha256;  // that planned it
  std::string sweep_sha256;    // of the sweep file, its base and the program
  std::vector<std::string> paths;
  std::vector<SweepMetric> metrics;  // of the sweep file
  std::vector<SweepPoint> points;
};

[[nodiscard]] Json manifest_to_json(const Manifest& manifest);
// Throws InputError for a document that is no manifest; `file` names it.
[[nodiscard]] Manifest manifest_from_json(const Json& document, const std::string& file);

// Keys in the order of their first point, each once.
[[nodiscard]] std::vector<std::string> runs_of(const Manifest& manifest);

}  // namespace weft
