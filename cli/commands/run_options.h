// Options that `run`, `compare` and `validate` share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft {

struct RunOptions {
  std::vector<std::string> sets;
  std::optional<std::string> fidelity;
  std::optional<unsigned> threads;
};

void add_run_options(CLI::App& command, RunOptions& options);

// The overrides in the order in which they apply: --set first, then the options that stand for one.
[[nodiscard]] std::vector<std::string> all_sets(const RunOptions& options);

// Throws InputError when `directory` cannot become a folder, before hours are spent on what would go into it.
void check_output_directory(const std::filesystem::path& directory);

}  // namespace weft
