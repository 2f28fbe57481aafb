#include "cli/config_paths.h"

#include <cstdlib>

#include "sim/error.h"

namespace weft {

std::string version() { return WEFT_VERSION; }

std::filesystem::path config_directory() {
  namespace fs = std::filesystem;
  if (const char* from_user = std::getenv("WEFT_CONFIGS"); from_user != nullptr) return from_user;
  for (const char* candidate : {WEFT_CONFIG_DIR, WEFT_INSTALLED_CONFIG_DIR}) {
    if (fs::is_directory(fs::path(candidate) / "systems")) return candidate;
  }
  throw MissingInput(WEFT_INSTALLED_CONFIG_DIR);
}

}  // namespace weft
