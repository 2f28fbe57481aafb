// Several commands of this program at once, each in a process of its own.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

using Arguments = std::vector<std::string>;  // without the program's name

struct ChildLimits {
  std::filesystem::path errors;                          // file for its stderr; empty: that of this process
  std::optional<std::chrono::duration<double>> timeout;  // killed after it
  std::optional<std::uint64_t> memory_bytes;             // of address space
};

// How a child ended and what it took.
struct ChildEnd {
  std::size_t id = 0;  // as given to start()
  int exit_code = 0;   // of one that was not killed
  int signal = 0;      // 0: it was not killed
  bool timed_out = false;
  double wall_s = 0, cpu_s = 0;
  std::int64_t peak_rss_bytes = 0;
};

// Processes of this program. Their stdout is dropped. None outlives this object or this process: the kernel kills them
// with it, however it ends. While one lives, SIGINT and SIGTERM of this process are noticed by wait() only.
class ChildProcesses {
 public:
  ChildProcesses();
  ~ChildProcesses();  // ends those that run
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  void start(std::size_t id, const Arguments& arguments, const ChildLimits& limits);
  // One that has ended, waiting for it for a second at most. Throws Interrupted after SIGINT or SIGTERM.
  [[nodiscard]] std::optional<ChildEnd> wait();
  [[nodiscard]] std::size_t running() const { return running_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child {
    std::size_t id;
    Clock::time_point started;
    std::optional<Clock::time_point> deadline;
    bool timed_out = false;
  };

  [[nodiscard]] std::optional<ChildEnd> reap();
  void kill_overdue();

  std::map<int, Child> running_;  // by process id
  sigset_t awaited_{}, before_{};
};

// Runs this program once for each element of `commands`, at most `parallel` at a time, and waits. Their stdout is
// dropped, their stderr is this process's. `finished` is told how many have ended. Returns 0, or the exit code of the
// first command (in order of ending) that failed; the others are then ended too. A command killed by a signal counts as
// an internal error (70). Throws Interrupted, with no child left, when SIGINT or SIGTERM arrives.
[[nodiscard]] int run_children(const std::vector<Arguments>& commands, std::size_t parallel,
                               const std::function<void(std::size_t)>& finished);

}  // namespace weft
