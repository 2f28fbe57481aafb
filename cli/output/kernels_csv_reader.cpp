#include "cli/output/kernels_csv_reader.h"

#include <utility>

#include "cli/output/csv_reader.h"

namespace weft {

namespace {

TrainingPhase phase_of(const std::string& name) {
  for (const TrainingPhase phase : {TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::optimizer}) {
    if (name == to_string(phase)) return phase;
  }
  return TrainingPhase::other;
}

}  // namespace

std::vector<OperationRecord> read_kernels_csv(const std::filesystem::path& file) {
  CsvReader csv(file);
  std::vector<OperationRecord> rows;
  const auto optional_number = [&](const char* column) { return csv.has(column) ? csv.number<double>(column) : 0.0; };
  while (csv.next_line()) {
    OperationRecord row;
    row.gpu = csv.number<std::uint32_t>("gpu");
    row.stream = csv.number<std::uint32_t>("stream");
    row.iteration = csv.number<std::uint32_t>("iteration");
    row.op = csv.number<std::uint32_t>("op");
    row.communication = csv.text("kind") == "communication";
    row.name = csv.text("name");
    if (csv.has("phase")) row.phase = phase_of(csv.text("phase"));
    row.start_s = csv.number<double>("start_s");
    row.end_s = csv.number<double>("end_s");
    if (!csv.text("isolated_s").empty()) row.isolated_s = csv.number<double>("isolated_s");
    row.causes = {optional_number("cause_compute_units_s"), optional_number("cause_hbm_s"),
                  optional_number("cause_cache_s"), optional_number("cause_links_s")};
    row.beside_waiting_s = optional_number("beside_waiting_s");
    row.beside_moving_s = optional_number("beside_moving_s");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weft
