// The commands and options of the program as data, read from CLI11's own tree: what the manual page and the shells'
// completions are made of, so that neither can go stale.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft {

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; a positional one has its name alone: "CONFIG"
  bool positional = false;
  bool takes_value = false;         // positional ones do
  std::vector<std::string> values;  // what it can be; empty: anything, so mostly a file
  std::string value_name;           // "PATH=VALUE", "FLOAT"; may be empty
  std::string description;
};

struct CommandNode {
  std::string path;  // "import kineto"; empty: the program
  std::string description;
  std::string footer;  // examples
  std::vector<CommandOption> options;
  std::vector<std::string> commands;  // names of those below
};

// The program first, then its commands, each before those below it.
[[nodiscard]] std::vector<CommandNode> command_tree(const CLI::App& app);

}  // namespace weft
