// A system between JSON and its specs. The keys are those of docs/formats.md, "Systems".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "sim/json_reader.h"

namespace weft {

// The parts of a system that an experiment may override: "gpu", "network", "switch_reduce", "network_reduce",
// "collectives".
[[nodiscard]] const std::vector<std::string>& system_parts();

// A system written out in full. Throws InputError for anything missing, unknown or impossible.
[[nodiscard]] SystemSpec read_system(JsonReader reader);

[[nodiscard]] Json system_to_json(const SystemSpec& system);

// configs/FOLDER/NAME.json as a document, with `where` (a JSON pointer in `file`) for the message when there is none.
[[nodiscard]] Json load_preset(const std::string& folder, const std::string& name, const std::string& file,
                               const std::string& where);

// The names of configs/FOLDER/*.json, in alphabetical order.
[[nodiscard]] std::vector<std::string> preset_names(const std::string& folder);
[[nodiscard]] std::filesystem::path preset_path(const std::string& folder, const std::string& name);

}  // namespace weft
