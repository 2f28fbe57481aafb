#include "cli/output/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::size_t kBarWidth = 30;
constexpr auto kQuietTime = std::chrono::seconds(1);
constexpr auto kRedraw = std::chrono::milliseconds(100);

extern "C" void exit_interrupted(int /*signal*/) { ::_exit(static_cast<int>(ExitCode::interrupted)); }

}  // namespace

void print_error(std::string_view message) { fmt::print(stderr, "weft: error: {}\n", message); }

void print_output(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written != text.size() || std::fflush(stdout) != 0) {
    throw InputError("stdout", "", "expected an output that can be written, got an error");
  }
}

bool color_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

void exit_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = exit_interrupted;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

ProgressBar::ProgressBar(bool wanted)
    : enabled_(wanted && ::isatty(STDERR_FILENO) == 1), next_draw_(Clock::now() + kQuietTime) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(double fraction, std::string_view stage) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + kRedraw;
  drawn_ = true;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  fmt::print(stderr, "\r\033[K[{}{}] {:3.0f} % {}", std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
             share * 100, stage);
  std::fflush(stderr);
}

void ProgressBar::finish() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace weft
