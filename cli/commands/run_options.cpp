#include "cli/commands/run_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "sim/error.h"
#include "sim/json_reader.h"

namespace weft {

namespace fs = std::filesystem;

void add_run_options(CLI::App& command, RunOptions& options) {
  command
      .add_option("--set", options.sets,
                  "Override a value of the configuration, e.g. network.link.bandwidth_GBps=300; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command.add_option("--fidelity", options.fidelity,
                     "cycle: everything in detail; sampled: what repeats is simulated once");
  command.add_option("--threads", options.threads, "Threads of a simulation; results do not depend on them");
}

std::vector<std::string> all_sets(const RunOptions& options) {
  std::vector<std::string> sets = options.sets;
  if (options.fidelity) sets.push_back("fidelity=" + Json(*options.fidelity).dump());
  if (options.threads) sets.push_back("threads=" + std::to_string(*options.threads));
  return sets;
}

void check_output_directory(const fs::path& directory) {
  fs::path existing = fs::absolute(directory).lexically_normal();
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  if (!fs::is_directory(existing, error) || ::access(existing.c_str(), W_OK | X_OK) != 0) {
    throw InputError(directory.string(), "",
                     "expected a folder that can be made or written, got " + existing.string() + " in its way");
  }
}

}  // namespace weft
