#include "cli/config/config_paths.h"

#include <cstdlib>
#include <system_error>

#include "sim/error.h"

namespace weft {

std::string version() { return WEFT_VERSION; }

std::filesystem::path config_directory() {
  namespace fs = std::filesystem;
  if (const char* from_user = std::getenv("WEFT_CONFIGS"); from_user != nullptr) return from_user;
  // An installation may lie anywhere, so it is looked for beside the program.
  std::error_code error;
  const fs::path installed = fs::read_symlink("/proc/self/exe", error).parent_path() / WEFT_RELATIVE_CONFIG_DIR;
  for (const fs::path& candidate : {installed, fs::path(WEFT_CONFIG_DIR)}) {
    if (fs::is_directory(candidate / "systems", error)) return candidate.lexically_normal();
  }
  throw MissingInput(installed.lexically_normal().string());
}

bool capture_has_cupti() { return WEFT_CAPTURE_HAS_CUPTI != 0; }

std::filesystem::path capture_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path installed = fs::read_symlink("/proc/self/exe", error).parent_path() / WEFT_RELATIVE_CAPTURE_LIBRARY;
  for (const fs::path& candidate : {installed, fs::path(WEFT_CAPTURE_LIBRARY)})
    if (fs::exists(candidate, error)) return candidate.lexically_normal();
  throw MissingInput(installed.lexically_normal().string());
}

}  // namespace weft
