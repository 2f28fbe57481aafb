// The table of a sweep: results.csv and results.sqlite.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/sweep/manifest.h"
#include "cli/sweep/run_store.h"
#include "sim/json_reader.h"

namespace weft {

struct SweepTable {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;  // one a point in the manifest's order; null: nothing to say
  std::size_t failed = 0, pending = 0;  // rows without a result
};

// Columns: point, the paths, seed, repetition, status, reason, the metrics. The status is that of the result, "failed",
// "timeout", or "pending".
[[nodiscard]] SweepTable sweep_table(const Manifest& manifest, const RunStore& store);

[[nodiscard]] std::vector<std::string> table_columns(const std::vector<std::string>& paths,
                                                     const std::vector<SweepMetric>& metrics);

// As RFC 4180 has it, lines ending with LF; null is an empty field.
[[nodiscard]] std::string table_csv(const SweepTable& table);

// A database with the table as "results". Written whole or not at all. Throws InputError.
void write_table_sqlite(const SweepTable& table, const std::filesystem::path& file);

}  // namespace weft
