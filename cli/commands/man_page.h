// The manual page, weft(1).
#pragma once

#include <string>
#include <vector>

#include "cli/commands/command_tree.h"

namespace weft {

// In the macros of man(7): a section for each command with its options and examples. `tree` as command_tree() gives it.
[[nodiscard]] std::string man_page(const std::vector<CommandNode>& tree);

}  // namespace weft
