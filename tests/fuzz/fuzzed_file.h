// A file with the fuzzer's bytes, in memory; readers take paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "sim/error.h"

namespace weft::fuzz {

class FuzzedFile {
 public:
  FuzzedFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("fuzzed", 0)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~FuzzedFile() { ::close(file_); }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// Bad input may be refused; anything else that `read` throws, a broken invariant too, ends the fuzzer.
template <class Read>
int read_fuzzed(const std::uint8_t* data, std::size_t size, Read read) {
  const FuzzedFile file(data, size);
  try {
    read(file.path());
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace weft::fuzz
