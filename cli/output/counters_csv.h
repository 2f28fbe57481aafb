// counters.csv of a run: its counters over time, as the report draws them (docs/formats.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/run/result.h"

namespace weft {

[[nodiscard]] const char* to_string(CounterKind kind);

[[nodiscard]] std::string counters_csv(const RunResult& result);

// Throws MissingInput, and InputError naming the line for a missing column or a field that is no number or no kind.
[[nodiscard]] std::vector<CounterTrack> read_counters_csv(const std::filesystem::path& file);

}  // namespace weft
