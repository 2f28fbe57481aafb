#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "cli/commands/command_tree.h"
#include "cli/commands/commands.h"
#include "cli/commands/completion.h"
#include "cli/commands/man_page.h"
#include "cli/output/terminal.h"

namespace weft {

void add_completion_command(CLI::App& app, Command& chosen) {
  using Writer = std::string (*)(const std::vector<CommandNode>&);
  static const std::map<std::string, Writer> writers{
      {"bash", bash_completion}, {"fish", fish_completion}, {"man", man_page}, {"zsh", zsh_completion}};
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell, or the manual page");
  command->add_option("WHAT", *what, "bash, zsh or fish, or man for the manual page in the macros of man(7)")
      ->required()
      ->check(CLI::IsMember({"bash", "fish", "man", "zsh"}));
  command->footer("Examples:\n  . <(weft completion bash)\n  weft completion man | man -l -");
  command->callback([what, &app, &chosen] {
    chosen = [what, &app] {
      print_output(writers.at(*what)(command_tree(app)));
      return 0;
    };
  });
}

}  // namespace weft
