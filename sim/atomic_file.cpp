#include "sim/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "sim/error.h"

namespace weft {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw InputError(path.string(), "", "expected a file that can be written, got: " + why);
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  // The process id keeps two runs into one folder from sharing a temporary file.
  std::filesystem::path temporary = path;
  temporary += ".tmp" + std::to_string(::getpid());
  std::error_code ignored;
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    if (!out) fail(path, std::system_category().message(errno));
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) {
      const std::string why = std::system_category().message(errno);
      std::filesystem::remove(temporary, ignored);
      fail(path, why);
    }
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) {
    std::filesystem::remove(temporary, ignored);
    fail(path, error.message());
  }
}

}  // namespace weft
