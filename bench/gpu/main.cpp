// Exit codes: 0 done (or nothing left to do), 64 and CLI11's for a wrong command line, 66 no GPU, 70 a measurement
// failed so that none can follow, 130 interrupted.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "bench/gpu/suites/session.h"

namespace weft::gpu_probe {
namespace {

constexpr int kNoGpu = 66, kFailed = 70, kInterrupted = 130;

volatile std::sig_atomic_t interrupted = 0;
void on_signal(int) { interrupted = 1; }

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm utc{};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return text;
}

// In a process of its own: CUPTI slows what it looks at, and does not go away.
int describe_apart(int argc, char** argv, double budget_s) {
  std::vector<std::string> arguments(argv, argv + argc);
  // The pairs matter more.
  arguments.insert(arguments.end(), {"--suite", "describe", "--budget-s", std::to_string(budget_s / 3)});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ) != 0) return kFailed;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kFailed;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

void run_suite(Suite suite, Session& session) {
  switch (suite) {
    case Suite::describe:
      return run_describe(session);
    case Suite::units:
      return run_units(session);
    case Suite::drain:
      return run_drain(session);
    case Suite::machine:
      return run_machine(session);
    case Suite::cache:
      return run_cache(session);
    case Suite::pairs:
      return run_pairs(session);
    case Suite::launch:
      return run_launch(session);
  }
}

void describe_machine(Session& session) {
  nlohmann::json machine = *session.results.section("machine");
  machine.update(session.gpu.describe());
  machine["command"] = session.options.command;
  machine["date"] = now_text();
  session.results.set("machine", machine);
}

int measure(Options options, std::chrono::steady_clock::time_point deadline) {
  ResultFile results(options.output, options.resume);
  Gpu gpu(options.libraries);
  Session session{options, gpu, results, deadline, interrupted};
  describe_machine(session);
  results.save();
  try {
    for (const Suite suite : options.suites) {
      if (session.is_over()) break;
      std::printf("%s\n", to_string(suite));
      std::fflush(stdout);
      run_suite(suite, session);
      results.save();
    }
  } catch (...) {
    results.save();
    throw;
  }
  if (session.is_over()) std::fprintf(stderr, "ended before everything was measured; --resume goes on\n");
  return interrupted != 0 ? kInterrupted : 0;
}

int run(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  int exit_code = 0;
  auto options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  if (options->list || options->dry_run) {
    if (options->list) std::fputs(list_text().c_str(), stdout);
    if (options->dry_run) std::fputs(dry_run_text(*options).c_str(), stdout);
    return 0;
  }
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (options->suites.size() > 1) {
    const int described = describe_apart(argc, argv, options->budget_s);
    if (described == kNoGpu || described == kInterrupted) return described;
    if (described != 0) std::fprintf(stderr, "kernels were not all described (%d)\n", described);
    options->suites.erase(options->suites.begin());
    options->resume = true;
  }
  const std::chrono::duration<double> budget(options->budget_s);
  return measure(*options, begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(budget));
}

}  // namespace
}  // namespace weft::gpu_probe

int main(int argc, char** argv) {
  using namespace weft::gpu_probe;
  try {
    return run(argc, argv);
  } catch (const NoGpu& none) {
    std::fprintf(stderr, "no GPU: %s\n", none.what());
    return kNoGpu;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weft_gpu_probe: %s\n", error.what());
    return kFailed;
  }
}
