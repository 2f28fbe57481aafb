// Which system a configuration describes: named, written out, or named and overridden.
#pragma once

#include <filesystem>
#include <string>

#include "cli/config/system_config.h"
#include "sim/json_reader.h"

namespace weft {

// The system of a configuration document: its "system", with the top-level parts "gpu", "network", "switch_reduce" and
// "collectives" merged over it; a network without switches takes what reduces in them out. `top` is the reader of the
// document and learns that these keys are known. A preset is checked by itself first, so that its own errors name its
// own file.
[[nodiscard]] SystemSpec system_of(JsonReader& top);

// The system of configs/systems/NAME.json.
[[nodiscard]] SystemSpec preset_system(const std::string& name);

// A file with its includes, where a preset, and a topology, take the place of what an included file has for them: the
// keys of another link, reducing switch or topology do not stay.
[[nodiscard]] Json load_configuration(const std::filesystem::path& path);

}  // namespace weft
