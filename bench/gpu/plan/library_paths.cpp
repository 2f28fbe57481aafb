#include "bench/gpu/plan/library_paths.h"

#include <algorithm>

namespace weft::gpu_probe {
namespace fs = std::filesystem;

std::vector<std::string> library_candidates(const std::vector<fs::path>& folders, const std::string& soname) {
  std::vector<std::string> found;
  const auto take = [&](const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / soname, error)) found.push_back((folder / soname).string());
  };
  for (const fs::path& folder : folders) {
    take(folder);
    take(folder / "lib");
    take(folder / "lib64");
    take(folder / "extras/CUPTI/lib64");
    std::vector<fs::path> wheels;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.is_directory(error)) wheels.push_back(entry.path() / "lib");
    }
    std::sort(wheels.begin(), wheels.end());
    for (const fs::path& wheel : wheels) take(wheel);
  }
  found.push_back(soname);
  return found;
}

}  // namespace weft::gpu_probe
