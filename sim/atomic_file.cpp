#include "sim/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <system_error>

#include "sim/error.h"

namespace weft {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int reason) {
  throw InputError(path.string(), "",
                   "expected a file that can be written, got: " + std::generic_category().message(reason));
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

InterruptsHeld::InterruptsHeld() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

InterruptsHeld::~InterruptsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const InterruptsHeld held;
  std::string temporary = path.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (descriptor < 0) fail(path, errno);
  // mkostemp gives 0600; a file that users share wants what the umask allows.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  bool good = ::fchmod(descriptor, 0666 & ~mask) == 0;
  good = good && write_all(descriptor, bytes) && ::fsync(descriptor) == 0;
  int reason = good ? 0 : errno;
  if (::close(descriptor) != 0 && reason == 0) reason = errno;
  if (reason == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) reason = errno;
  if (reason != 0) {
    ::unlink(temporary.c_str());
    fail(path, reason);
  }
}

}  // namespace weft
