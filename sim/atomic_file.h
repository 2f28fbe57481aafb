// Files that are either whole or not there.
#pragma once

#include <csignal>
#include <filesystem>
#include <string_view>

namespace weft {

// Writes `bytes` to a temporary file in the folder of `path`, flushes it to the disk and renames it to `path`: a reader
// sees the old file or the whole new one. On failure nothing is left behind and an InputError names the file and the
// system's reason. The folder must exist.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// While one lives, SIGINT, SIGTERM and SIGHUP wait: files that belong together are all written or none.
class InterruptsHeld {
 public:
  InterruptsHeld();
  ~InterruptsHeld();
  InterruptsHeld(const InterruptsHeld&) = delete;
  InterruptsHeld& operator=(const InterruptsHeld&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace weft
