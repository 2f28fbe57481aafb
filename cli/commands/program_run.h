// Runs a user's program in the place of this one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Runs it with this process's files and environment, in which `variables` are set, and waits. The terminal's interrupts
// are the program's to answer; SIGTERM and SIGHUP are passed on to it. Returns its exit code, or 128 and the number of
// the signal that ended it, as shells do. Throws MissingInput when there is no such program, InputError when it cannot
// be started.
[[nodiscard]] int run_program(const std::vector<std::string>& command, const Variables& variables);

}  // namespace weft
