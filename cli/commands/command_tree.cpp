#include "cli/commands/command_tree.h"

#include <CLI/CLI.hpp>

namespace weft {

namespace {

// CLI11 writes a choice into the type: "TEXT:{ring,tree}".
std::vector<std::string> values_of(const std::string& type) {
  const std::size_t from = type.find('{');
  const std::size_t to = type.find('}');
  if (from == std::string::npos || to == std::string::npos) return {};
  return CLI::detail::split(type.substr(from + 1, to - from - 1), ',');
}

CommandOption option_of(const CLI::Option& option) {
  CommandOption out;
  out.positional = option.get_positional();
  if (out.positional) {
    out.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  }
  out.takes_value = option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
  const std::string type = option.get_type_name();
  out.values = values_of(type);
  out.value_name = type.substr(0, type.find(':'));
  out.description = option.get_description();
  return out;
}

void append(const CLI::App& app, const std::string& path, std::vector<CommandNode>& nodes) {
  const std::size_t place = nodes.size();
  nodes.push_back({path, app.get_description(), app.get_footer(), {}, {}});
  for (const CLI::Option* option : app.get_options()) nodes[place].options.push_back(option_of(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    nodes[place].commands.push_back(command->get_name());
    append(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), nodes);
  }
}

}  // namespace

std::vector<CommandNode> command_tree(const CLI::App& app) {
  std::vector<CommandNode> nodes;
  append(app, "", nodes);
  return nodes;
}

}  // namespace weft
