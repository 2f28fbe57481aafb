// Reads back the kernels.csv of a run (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct KernelsCsvRow {
  std::uint32_t gpu = 0;
  std::uint32_t stream = 0;
  std::uint32_t iteration = 0;
  std::uint32_t op = 0;
  bool communication = false;
  std::string name;
  double start_s = 0;
  double end_s = 0;
  std::optional<double> isolated_s;
};

// Rows in the order of the file; columns may stand in any order, further ones are ignored. Throws MissingInput, and
// InputError naming the line for a missing column, a field that is no number, or a quote that does not end.
[[nodiscard]] std::vector<KernelsCsvRow> read_kernels_csv(const std::filesystem::path& file);

}  // namespace weft
