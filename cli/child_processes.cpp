#include "cli/child_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <map>
#include <system_error>

#include "cli/terminal.h"
#include "sim/error.h"

namespace weft {

namespace {

// Waits for SIGCHLD and interrupts with all of them blocked, so that none arrives between a test and a wait.
class SignalWait {
 public:
  SignalWait() {
    sigemptyset(&awaited_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&awaited_, signal);
    pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
  }
  ~SignalWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  [[nodiscard]] const sigset_t& before() const { return before_; }
  // Returns whether an interrupt arrived.
  [[nodiscard]] bool wait() const {
    const timespec most{1, 0};
    const int signal = ::sigtimedwait(&awaited_, nullptr, &most);
    return signal == SIGINT || signal == SIGTERM;
  }

 private:
  sigset_t awaited_{}, before_{};
};

pid_t spawn(const Arguments& arguments, const sigset_t& mask) {
  std::string program = "weft";
  Arguments copies = arguments;
  std::vector<char*> argv{program.data()};
  for (auto& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw InternalError("cannot start a process: " + std::generic_category().message(error));
  return child;
}

// The children that run, ended with this object.
class Children {
 public:
  Children() = default;
  ~Children() {
    for (const auto& child : running_) ::kill(child.first, SIGTERM);
    for (const auto& child : running_) ::waitpid(child.first, nullptr, 0);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  [[nodiscard]] std::size_t size() const { return running_.size(); }
  void start(const Arguments& arguments, const sigset_t& mask) { running_[spawn(arguments, mask)] = arguments; }
  // Takes one that has ended and returns its exit code, or -1 when none has.
  [[nodiscard]] int reap() {
    for (auto child = running_.begin(); child != running_.end(); ++child) {
      int status = 0;
      if (::waitpid(child->first, &status, WNOHANG) != child->first) continue;
      const Arguments arguments = child->second;
      running_.erase(child);
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      print_error(
          fmt::format("weft {}: expected an exit code, got signal {}", fmt::join(arguments, " "), WTERMSIG(status)));
      return static_cast<int>(ExitCode::internal_error);
    }
    return -1;
  }

 private:
  std::map<pid_t, Arguments> running_;
};

}  // namespace

int run_children(const std::vector<Arguments>& commands, std::size_t parallel,
                 const std::function<void(std::size_t)>& finished) {
  const SignalWait signals;
  Children children;
  std::size_t started = 0, ended = 0;
  while (ended < commands.size()) {
    while (started < commands.size() && children.size() < std::max<std::size_t>(parallel, 1)) {
      children.start(commands[started++], signals.before());
    }
    const bool interrupted = signals.wait();
    for (int code = children.reap(); code >= 0; code = children.reap()) {
      if (code == static_cast<int>(ExitCode::interrupted)) throw Interrupted();
      if (code != 0) return code;
      ++ended;
    }
    if (interrupted) throw Interrupted();
    finished(ended);
  }
  return 0;
}

}  // namespace weft
