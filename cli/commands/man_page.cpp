#include "cli/commands/man_page.h"

#include <fmt/format.h>

#include <sstream>

#include "cli/config/config_paths.h"

namespace weft {

namespace {

// Text that troff takes literally: no escapes, no requests at the start of a line, dashes that can be copied.
std::string literal(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool at_start = out.empty() || out.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + literal(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + literal(text) + "\\fR"; }

std::string option_line(const CommandOption& option) {
  if (option.positional) return italic(option.names.front());
  std::string line;
  for (const std::string& name : option.names) line += (line.empty() ? "" : ", ") + bold(name);
  if (option.takes_value) line += " " + italic(option.value_name.empty() ? "VALUE" : option.value_name);
  return line;
}

std::string synopsis(const CommandNode& node) {
  std::string line = bold(node.path.empty() ? "weft" : "weft " + node.path);
  if (!node.commands.empty()) line += " " + italic("COMMAND");
  for (const CommandOption& option : node.options) {
    if (option.positional) line += " " + italic(option.names.front());
  }
  return line + " [" + italic("OPTION") + "]...";
}

// Indented lines of a footer are examples and stay as they are; the others are text.
std::string footer(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  bool in_example = false;
  for (std::string line; std::getline(lines, line);) {
    const bool example = line.starts_with("  ");
    if (example != in_example) out += example ? ".PP\n.nf\n" : ".fi\n.PP\n";
    in_example = example;
    if (!line.empty()) out += literal(line) + "\n";
  }
  return in_example ? out + ".fi\n" : out;
}

}  // namespace

std::string man_page(const std::vector<CommandNode>& tree) {
  const CommandNode& program = tree.front();
  std::string page = fmt::format(".TH WEFT 1 \"\" \"weft {}\" \"User Commands\"\n", version());
  page += ".SH NAME\nweft \\- simulator of training on several GPUs whose network can reduce\n";
  page += ".SH SYNOPSIS\n" + synopsis(program) + "\n";
  page += ".SH DESCRIPTION\n" + literal(program.description) + "\n";
  for (const CommandNode& node : tree) {
    page += node.path.empty() ? ".SH OPTIONS\n" : ".SS " + synopsis(node) + "\n";
    if (!node.path.empty()) page += literal(node.description) + ".\n";
    for (const CommandOption& option : node.options) {
      page += ".TP\n" + option_line(option) + "\n" + literal(option.description) + "\n";
      if (option.values.empty()) continue;
      std::string choice;
      for (const std::string& value : option.values) choice += (choice.empty() ? "" : ", ") + bold(value);
      page += ".br\nOne of " + choice + ".\n";
    }
    if (!node.footer.empty()) page += ".PP\n" + footer(node.footer);
    if (node.path.empty()) page += ".SH COMMANDS\n";
  }
  page += ".SH ENVIRONMENT\n.TP\n" + bold("WEFT_CONFIGS") +
          "\nFolder of systems, links and reducing hardware, instead of the installed one.\n.TP\n" + bold("NO_COLOR") +
          "\nNo colour, if set and not empty.\n";
  return page;
}

}  // namespace weft
