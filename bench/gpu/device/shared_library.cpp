#include "bench/gpu/device/shared_library.h"

#include "bench/gpu/plan/library_paths.h"

namespace weft::gpu_probe {

SharedLibrary::SharedLibrary(const std::vector<std::filesystem::path>& folders, const std::string& soname) {
  std::string said;
  for (const std::string& candidate : library_candidates(folders, soname)) {
    handle_ = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_ != nullptr) {
      path_ = candidate;
      return;
    }
    if (const char* error = ::dlerror()) said = error;
  }
  throw MissingLibrary(soname + " was not opened: " + said);
}

void* SharedLibrary::address(const char* name) const {
  void* found = ::dlsym(handle_, name);
  if (found == nullptr) throw MissingLibrary(path_ + " has no " + name);
  return found;
}

}  // namespace weft::gpu_probe
