// The program: commands, help, and what every failure looks like.
#pragma once

#include <functional>
#include <vector>

namespace weft {

// Parses the command line, runs the command and returns the exit code (INTERFACE: 0, 2, 65, 66, 70, 75, 130). Messages
// go to stderr as "weft: error: ...", data to stdout.
[[nodiscard]] int run_app(int argc, const char* const* argv);

// Runs `command` and turns what it throws into a message and an exit code.
[[nodiscard]] int run_guarded(const std::function<int()>& command);

}  // namespace weft
