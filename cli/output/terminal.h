// What commands need of the terminal: messages, colour, progress, interrupts.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

// Writes "weft: error: MESSAGE" to stderr.
void print_error(std::string_view message);

// Writes to stdout and flushes. Throws InputError when that fails (a full disk).
void print_output(std::string_view text);

// Whether stdout takes colour: a terminal, and NO_COLOR is unset or empty (no-color.org).
[[nodiscard]] bool color_wanted();

// SIGINT arrived and the command has cleaned up after itself: exit code 130.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

// From now on SIGINT ends the process at once with exit code 130. For commands that have nothing to clean up; hold
// interrupts (InterruptsHeld) while writing files that belong together.
void exit_on_interrupt();

// A bar on stderr, if that is a terminal, once the work has taken over a second. Redrawn ten times a second at most.
class ProgressBar {
 public:
  explicit ProgressBar(bool wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(double fraction, std::string_view stage);
  // Takes the bar off the screen.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  bool drawn_ = false;
  Clock::time_point next_draw_;
};

}  // namespace weft
