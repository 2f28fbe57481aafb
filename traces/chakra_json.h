// Chakra's JSON form, as its own reader takes it: "workload_graph", a list of nodes.
#pragma once

#include <filesystem>

#include "traces/chakra_file.h"

namespace weft {

// Throws as read_chakra does.
[[nodiscard]] ChakraFile read_chakra_json(const std::filesystem::path& file);

}  // namespace weft
