// Completion of weft's command line by a shell: of commands, options and their choices; of files for all else.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/command_tree.h"

namespace weft {

// Scripts in the shell's language, for its folder of completions. `tree` as command_tree() gives it.
[[nodiscard]] std::string bash_completion(const std::vector<CommandNode>& tree);
[[nodiscard]] std::string zsh_completion(const std::vector<CommandNode>& tree);
[[nodiscard]] std::string fish_completion(const std::vector<CommandNode>& tree);

}  // namespace weft
