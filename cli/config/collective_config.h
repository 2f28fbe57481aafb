// The part of a configuration that says how collectives run: "all_reduce", and the workload of a collective alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config/spec_fields.h"
#include "cli/config/system_config.h"
#include "workloads/collective_series.h"

namespace weft {

void all_reduce_fields(FieldReader& fields, RunConfig& config);
void all_reduce_fields(FieldWriter& fields, RunConfig& config);
void workload_fields(FieldReader& fields, CollectiveWorkload& workload);
void workload_fields(FieldWriter& fields, CollectiveWorkload& workload);

// `written` beside `config_file`, else in the working folder, else in `shipped` if it is given. Throws MissingInput.
[[nodiscard]] std::filesystem::path find_input(const std::string& written, const std::filesystem::path& config_file,
                                               const std::filesystem::path& shipped = {});

// Reads and proves the algorithm that the configuration names a file of. Throws InputError with the place in it.
void load_algorithm(RunConfig& config, const std::filesystem::path& config_file);

// What the collectives of a whole configuration must agree on: the algorithm and the collective, its groups, its root.
// Throws InputError; `file` names the configuration.
void check_collectives(const RunConfig& config, const std::string& file);

// The workload of a collective alone.
[[nodiscard]] CollectiveSeries series_of(const RunConfig& config);

// The names that a configuration knows, for messages and `weft list`.
[[nodiscard]] std::vector<std::string> all_reduce_algorithm_names();
[[nodiscard]] const EnumNames<CollectiveKind>& collective_table();
[[nodiscard]] std::vector<std::string> algorithm_names_for(CollectiveKind kind);
[[nodiscard]] std::vector<std::string> collective_names();
[[nodiscard]] std::vector<std::string> protocol_names();

}  // namespace weft
