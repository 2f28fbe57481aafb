// The part of checking a configuration that needs the workloads themselves.
#pragma once

#include <filesystem>

#include "cli/config/system_config.h"

namespace weft {

// Throws InputError at /workload/model when no such model exists, with the nearest one that does. `file` is the
// configuration's.
void check_model(const RunConfig& config, const std::filesystem::path& file);

}  // namespace weft
