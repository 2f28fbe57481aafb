#include "cli/commands/program_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "sim/error.h"

namespace weft {

namespace {

volatile pid_t running_program = 0;

extern "C" void pass_on(int signal) {
  if (running_program > 0) ::kill(running_program, signal);
}

// What this process does with signals while the program runs, undone at the end.
class Signals {
 public:
  Signals() {
    struct sigaction passed {};
    passed.sa_handler = pass_on;
    sigemptyset(&passed.sa_mask);
    struct sigaction ignored = passed;
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], i < 2 ? &ignored : &passed, &before_[i]);
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};  // the terminal sends the first two to both
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace

int run_program(const std::vector<std::string>& command, const Variables& variables) {
  std::vector<std::string> copies = command;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> failure{};  // through it comes the reason why there is no program; nothing if there is one
  if (::pipe2(failure.data(), O_CLOEXEC) != 0)
    throw InternalError("cannot make a pipe: " + std::generic_category().message(errno));

  const Signals signals;
  const pid_t child = ::fork();
  if (child == 0) {
    signals.restore();
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(argv[0], argv.data());
    const int reason = errno;
    static_cast<void>(!::write(failure[1], &reason, sizeof(reason)));
    ::_exit(127);
  }
  ::close(failure[1]);
  if (child < 0) {
    ::close(failure[0]);
    throw InternalError("cannot start a process: " + std::generic_category().message(errno));
  }
  running_program = child;
  int reason = 0, status = 0;
  const bool failed = ::read(failure[0], &reason, sizeof(reason)) == sizeof(reason);
  ::close(failure[0]);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running_program = 0;
  if (failed && reason == ENOENT) throw MissingInput(command.front());
  if (failed)
    throw InputError(command.front(), "", "expected a program, got: " + std::generic_category().message(reason));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace weft
