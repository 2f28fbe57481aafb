// Where weft finds the files it ships.
#pragma once

#include <filesystem>
#include <string>

namespace weft {

[[nodiscard]] std::string version();

// configs/ of the installation, else of the source tree this program was built from; $WEFT_CONFIGS goes first.
// Throws MissingInput when there is none.
[[nodiscard]] std::filesystem::path config_directory();

// What `weft capture` injects into programs; of the installation, else of the build. Throws MissingInput.
[[nodiscard]] std::filesystem::path capture_library();
// Whether it was built with CUPTI, without which no kernel is recorded.
[[nodiscard]] bool capture_has_cupti();

}  // namespace weft
