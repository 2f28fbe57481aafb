// What a sweep file says (docs/formats.md, "weft sweep").
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/json_reader.h"

namespace weft {

struct SweepAxis {
  std::string path;          // of the configuration: keys joined by dots, as of --set
  std::vector<Json> values;  // what is set
  std::vector<Json> shown;   // what the table has: the value, or its label
};

// Axes that take their values together: the first of each, the second of each, ... One path of "grid" is one alone.
using ZippedAxes = std::vector<SweepAxis>;

// A column of the table. The path leads through result.json; max, min, sum and mean(PATH) are over array elements.
struct SweepMetric {
  std::string name;
  std::string path;
};

struct SweepFile {
  Json base;                        // configuration document, includes resolved
  std::filesystem::path base_file;  // names it in messages; where its relative paths start
  std::vector<ZippedAxes> axes;     // the first varies slowest
  std::vector<std::string> where;
  std::vector<std::int64_t> seeds;  // empty: the configuration's
  std::int64_t repetitions = 1;
  std::vector<SweepMetric> metrics;  // beyond those that every table has
};

// Throws MissingInput and InputError (file, JSON path, expected, got).
[[nodiscard]] SweepFile read_sweep_file(const std::filesystem::path& file);

}  // namespace weft
