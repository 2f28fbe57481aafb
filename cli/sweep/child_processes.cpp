#include "cli/sweep/child_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "cli/output/terminal.h"
#include "sim/error.h"

namespace weft {

namespace {

using Seconds = std::chrono::duration<double>;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

void put_at(int descriptor, const char* file, int flags) {
  const int opened = ::open(file, flags, 0666);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(static_cast<int>(ExitCode::internal_error));
  ::close(opened);
}

// What the child does before it becomes the program: only what is safe after fork.
[[noreturn]] void become(char* const* argv, pid_t parent, const sigset_t& mask, const ChildLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::interrupted));  // it died before prctl
  put_at(STDOUT_FILENO, "/dev/null", O_WRONLY);
  if (!limits.errors.empty()) put_at(STDERR_FILENO, limits.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  if (limits.memory_bytes) {
    const rlimit most{*limits.memory_bytes, *limits.memory_bytes};
    ::setrlimit(RLIMIT_AS, &most);
  }
  // When the machine runs out of memory, the kernel shall end a child, not who looks after all of them.
  if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY); score >= 0) {
    static_cast<void>(!::write(score, "500", 3));
    ::close(score);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execv("/proc/self/exe", argv);
  ::_exit(static_cast<int>(ExitCode::internal_error));
}

}  // namespace

ChildProcesses::ChildProcesses() {
  sigemptyset(&awaited_);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&awaited_, signal);
  pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
}

ChildProcesses::~ChildProcesses() {
  for (const auto& child : running_) ::kill(child.first, SIGTERM);
  for (const auto& child : running_) ::waitpid(child.first, nullptr, 0);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void ChildProcesses::start(std::size_t id, const Arguments& arguments, const ChildLimits& limits) {
  std::string program = "weft";
  Arguments copies = arguments;
  std::vector<char*> argv{program.data()};
  for (auto& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(argv.data(), parent, before_, limits);
  if (child < 0) throw InternalError("cannot start a process: " + std::generic_category().message(errno));
  Child& entry = running_[child] = {id, Clock::now(), {}};
  if (limits.timeout) entry.deadline = entry.started + std::chrono::duration_cast<Clock::duration>(*limits.timeout);
}

std::optional<ChildEnd> ChildProcesses::reap() {
  for (auto child = running_.begin(); child != running_.end(); ++child) {
    int status = 0;
    rusage used{};
    if (::wait4(child->first, &status, WNOHANG, &used) != child->first) continue;
    ChildEnd end;
    end.id = child->second.id;
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end.timed_out = child->second.timed_out;
    end.wall_s = Seconds(Clock::now() - child->second.started).count();
    end.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
    end.peak_rss_bytes = std::int64_t{used.ru_maxrss} * 1024;
    running_.erase(child);
    return end;
  }
  return std::nullopt;
}

void ChildProcesses::kill_overdue() {
  for (auto& [process, child] : running_) {
    if (child.timed_out || !child.deadline || Clock::now() < *child.deadline) continue;
    child.timed_out = true;
    ::kill(process, SIGKILL);
  }
}

std::optional<ChildEnd> ChildProcesses::wait() {
  // Signals are blocked, so that none arrives between this look and the wait.
  if (auto ended = reap()) return ended;
  auto until = Clock::now() + std::chrono::seconds(1);
  for (const auto& [process, child] : running_) {
    if (child.deadline && !child.timed_out) until = std::min(until, *child.deadline);
  }
  const auto left = std::max(Clock::duration::zero(), until - Clock::now());
  const timespec most{static_cast<time_t>(left / std::chrono::seconds(1)),
                      static_cast<long>((left % std::chrono::seconds(1)) / std::chrono::nanoseconds(1))};
  const int signal = ::sigtimedwait(&awaited_, nullptr, &most);
  if (signal == SIGINT || signal == SIGTERM) throw Interrupted();
  kill_overdue();
  return reap();
}

int run_children(const std::vector<Arguments>& commands, std::size_t parallel,
                 const std::function<void(std::size_t)>& finished) {
  ChildProcesses children;
  std::size_t started = 0, ended = 0;
  while (ended < commands.size()) {
    while (started < commands.size() && children.running() < std::max<std::size_t>(parallel, 1)) {
      children.start(started, commands[started], {});
      ++started;
    }
    if (const auto end = children.wait()) {
      if (end->signal != 0) {
        print_error(fmt::format("weft {}: expected an exit code, got signal {}", fmt::join(commands[end->id], " "),
                                end->signal));
        return static_cast<int>(ExitCode::internal_error);
      }
      if (end->exit_code == static_cast<int>(ExitCode::interrupted)) throw Interrupted();
      if (end->exit_code != 0) return end->exit_code;
      ++ended;
    }
    finished(ended);
  }
  return 0;
}

}  // namespace weft
