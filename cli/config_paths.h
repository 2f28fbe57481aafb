// Where weft finds the files it ships.
#pragma once

#include <filesystem>
#include <string>

namespace weft {

[[nodiscard]] std::string version();

// configs/ of the installation, else of the source tree this program was built from; $WEFT_CONFIGS goes first.
// Throws MissingInput when there is none.
[[nodiscard]] std::filesystem::path config_directory();

}  // namespace weft
