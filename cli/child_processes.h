// Several commands of this program at once, each in a process of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft {

using Arguments = std::vector<std::string>;  // without the program's name

// Runs this program once for each element of `commands`, at most `parallel` at a time, and waits. Their stdout is
// dropped, their stderr is this process's. `finished` is told how many have ended. Returns 0, or the exit code of the
// first command (in order of ending) that failed; the others are then ended too. A command killed by a signal counts as
// an internal error (70). Throws Interrupted, with no child left, when SIGINT or SIGTERM arrives.
[[nodiscard]] int run_children(const std::vector<Arguments>& commands, std::size_t parallel,
                               const std::function<void(std::size_t)>& finished);

}  // namespace weft
