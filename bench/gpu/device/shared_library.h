// A library that is opened when the program runs, so that the program starts without it.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::gpu_probe {

class MissingLibrary : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class SharedLibrary {
 public:
  // The first of the candidates (library_candidates) that opens. It stays open: libraries of CUDA have threads and exit
  // handlers. Throws MissingLibrary with what the linker said of the last.
  SharedLibrary(const std::vector<std::filesystem::path>& folders, const std::string& soname);

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] void* address(const char* name) const;
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace weft::gpu_probe
