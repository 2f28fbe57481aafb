#include "cli/sweep/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "claim.";

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// When a process started, in ticks since boot: the 22nd field of /proc/PID/stat, the 20th after the name. Empty: no
// such process.
std::string start_of(pid_t process) {
  const std::string stat = first_line(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int f = 0; f < 20; ++f) fields >> field;
  return field;
}

// The machine, its boot, and the processes that it can see.
std::string machine() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code ignored;
  return fmt::format("{} {} {}", host.data(), first_line("/proc/sys/kernel/random/boot_id"),
                     fs::read_symlink("/proc/self/ns/pid", ignored).string());
}

unsigned highest(const fs::path& folder) {
  unsigned most = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder, gone)) {
    const std::string name = entry.path().filename().string();
    unsigned number = 0;
    if (!name.starts_with(kPrefix)) continue;
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) most = std::max(most, number);
  }
  return most;
}

fs::path claim_path(const fs::path& folder, unsigned number) { return folder / fmt::format("{}{}", kPrefix, number); }

// `now` is by the clock of who keeps the files, as the time of the claim is.
bool stale(const fs::path& claim, const timespec& now, std::chrono::seconds stale_after) {
  std::ifstream stream(claim);
  std::string where, process, started;
  std::getline(stream, where);
  std::getline(stream, process);
  std::getline(stream, started);
  if (where == machine()) {
    pid_t id = 0;
    std::from_chars(process.data(), process.data() + process.size(), id);
    return id <= 0 || start_of(id) != started;
  }
  struct stat status {};
  if (::stat(claim.c_str(), &status) != 0) return true;
  return now.tv_sec - status.st_mtim.tv_sec > stale_after.count();
}

// A file with this process's name that nobody else has; gone with the object.
class Probe {
 public:
  explicit Probe(const fs::path& folder) : path_((folder / ".probe.XXXXXX").string()) {
    const int descriptor = ::mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor < 0) {
      reason_ = errno;
      return;
    }
    const std::string text = fmt::format("{}\n{}\n{}\n", machine(), ::getpid(), start_of(::getpid()));
    if (::write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) reason_ = ENOSPC;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0) made_ = status.st_mtim;
    ::close(descriptor);
  }
  ~Probe() { ::unlink(path_.c_str()); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  [[nodiscard]] int reason() const { return reason_; }
  [[nodiscard]] const timespec& made() const { return made_; }
  [[nodiscard]] bool link_to(const fs::path& target) const { return ::link(path_.c_str(), target.c_str()) == 0; }

 private:
  std::string path_;
  timespec made_{};
  int reason_ = 0;
};

}  // namespace

std::optional<Claim> Claim::take(const fs::path& folder, std::chrono::seconds stale_after) {
  const Probe probe(folder);
  if (probe.reason() == ENOENT) return std::nullopt;  // done by another process meanwhile
  if (probe.reason() != 0) {
    throw InputError(folder.string(), "",
                     "expected a folder that can be written, got: " + std::generic_category().message(probe.reason()));
  }
  const unsigned last = highest(folder);
  if (last > 0 && !stale(claim_path(folder, last), probe.made(), stale_after)) return std::nullopt;
  if (!probe.link_to(claim_path(folder, last + 1))) return std::nullopt;
  return Claim(folder, last + 1);
}

bool Claim::held_by_any(const fs::path& folder, std::chrono::seconds stale_after) {
  const unsigned last = highest(folder);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return last > 0 && !stale(claim_path(folder, last), now, stale_after);
}

bool Claim::held() const { return highest(folder_) == number_; }

void Claim::touch() const { ::utimensat(AT_FDCWD, claim_path(folder_, number_).c_str(), nullptr, 0); }

void remove_claims(const fs::path& folder) {
  std::error_code ignored;
  for (unsigned number = highest(folder); number > 0; number = highest(folder)) {
    if (!fs::remove(claim_path(folder, number), ignored)) return;
  }
}

}  // namespace weft
