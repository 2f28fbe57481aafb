// The command line, and which measurements it asks for.
#pragma once

#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "bench/gpu/plan/pair_plan.h"

namespace weft::gpu_probe {

enum class Suite { describe, units, drain, machine, cache, pairs, launch };
[[nodiscard]] const char* to_string(Suite suite);

struct Options {
  std::vector<Suite> suites;  // in the order in which they run
  Selection selection;
  double budget_s = 540;
  double pair_ms = 100;
  bool list = false, dry_run = false, resume = false;
  std::filesystem::path output = "overlap.json";
  std::vector<std::filesystem::path> libraries;
  std::string command;  // as it was given
};

// Absent: the program is done, with `exit_code` (after --help, or what is wrong was printed).
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, int& exit_code);

// Names of victims and aggressors, one a line.
[[nodiscard]] std::string list_text();
// What would run and for how long.
[[nodiscard]] std::string dry_run_text(const Options& options);

}  // namespace weft::gpu_probe
