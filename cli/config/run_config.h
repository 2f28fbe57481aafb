// From configuration files to a checked RunConfig (docs/formats.md, "Configuration").
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "sim/json_reader.h"

namespace weft {

// Reads `file` with its includes, applies the overrides ("PATH=VALUE", see apply_set) and checks everything that needs
// no simulation. A relative path of a trace is looked for beside `file`, then in the working folder. Throws
// MissingInput for files that are not there, InputError (file, JSON path, expected, got) for all else.
[[nodiscard]] RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& sets);

// The same from a document; `file` names it in messages and is where relative paths start from.
[[nodiscard]] RunConfig read_run_config(const Json& document, const std::filesystem::path& file);

// Of GPUs that have links to each other, those that take part have the ones among them: `links_per_gpu` of a system
// with the links among `before` of its GPUs becomes that of `gpus`. A configuration's is the whole machine's; a
// RunConfig has those among its own GPUs.
void have_links_among(std::uint32_t gpus, std::uint32_t before, SystemSpec& system);

// Whether it is a sweep and no configuration: it has a base, or varies something.
[[nodiscard]] bool is_sweep(const Json& document);

}  // namespace weft
