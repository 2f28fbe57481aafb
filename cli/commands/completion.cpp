#include "cli/commands/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {

namespace {

// In single quotes of all three shells, where a quote cannot stand.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// What can stand where a word of a command begins: commands below, choices of its positional arguments.
std::vector<std::string> first_words(const CommandNode& node) {
  std::vector<std::string> words = node.commands;
  for (const CommandOption& option : node.options) {
    if (option.positional) words.insert(words.end(), option.values.begin(), option.values.end());
  }
  return words;
}

std::vector<std::string> option_names(const CommandNode& node) {
  std::vector<std::string> names;
  for (const CommandOption& option : node.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Paths of commands as patterns of `case`, and as words of a list.
std::vector<std::string> command_patterns(const std::vector<CommandNode>& tree) {
  std::vector<std::string> patterns;
  for (const CommandNode& node : tree) {
    if (node.path.empty()) continue;
    const bool below = node.path.find(' ') != std::string::npos;
    patterns.push_back(quoted((below ? "" : " ") + node.path));
  }
  return patterns;
}

// The cases of what follows an option that takes a value: its choices; without any, a file.
std::string value_cases(const std::vector<CommandNode>& tree) {
  std::string cases;
  for (const CommandNode& node : tree) {
    for (const CommandOption& option : node.options) {
      if (option.positional || !option.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(quoted(node.path + ":" + name));
      cases += fmt::format("    {}) choices={} ;;\n", fmt::join(patterns, "|"),
                           quoted(fmt::format("{}", fmt::join(option.values, " "))));
    }
  }
  return cases;
}

// Both shells read this: sets `command` to the path of what the words before the cursor name, and `choices` to what can
// follow.
std::string find_words(const std::vector<CommandNode>& tree, const char* words_before) {
  std::string text = fmt::format(R"(  local command= choices= word previous=
  for word in {}; do
    case "$command $word" in
      {}) command="${{command:+$command }}$word" ;;
    esac
    previous=$word
  done
  case "$command:$previous" in
{}    *)
      case "$command" in
)",
                                 words_before, fmt::join(command_patterns(tree), "|"), value_cases(tree));
  for (const CommandNode& node : tree) {
    text += fmt::format("        {}) if [[ $current == -* ]]; then choices={}; else choices={}; fi ;;\n",
                        quoted(node.path), quoted(fmt::format("{}", fmt::join(option_names(node), " "))),
                        quoted(fmt::format("{}", fmt::join(first_words(node), " "))));
  }
  return text + "      esac ;;\n  esac\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandNode>& tree) {
  return "# Completion of weft for bash. Made by `weft completion bash`.\n_weft() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]}\n" +
         find_words(tree, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"") +
         "  COMPREPLY=($(compgen -W \"$choices\" -- \"$current\"))\n}\n"
         "complete -o default -F _weft weft\n";  // default: files where there is no word
}

std::string zsh_completion(const std::vector<CommandNode>& tree) {
  return "#compdef weft\n# Completion of weft for zsh. Made by `weft completion zsh`.\n_weft() {\n"
         "  local current=${words[CURRENT]}\n  local -a before=(${words[2,CURRENT-1]})\n" +
         find_words(tree, "$before") +
         "  if [[ -n $choices ]]; then compadd -- ${=choices}; else _files; fi\n}\n"
         "if [[ $funcstack[1] == _weft ]]; then _weft \"$@\"; else compdef _weft weft; fi\n";
}

std::string fish_completion(const std::vector<CommandNode>& tree) {
  std::string text = fmt::format(
      R"(# Completion of weft for fish. Made by `weft completion fish`.
function __weft_command
  set -l command ''
  for word in (commandline -opc)[2..-1]
    if contains -- "$command $word" {}
      set command (string trim -- "$command $word")
    end
  end
  echo $command
end
)",
      fmt::join(command_patterns(tree), " "));
  for (const CommandNode& node : tree) {
    const std::string here =
        fmt::format("complete -c weft -n {}", quoted(fmt::format("test \"$(__weft_command)\" = \"{}\"", node.path)));
    for (const std::string& command : node.commands) {
      const std::string path = node.path.empty() ? command : node.path + " " + command;
      for (const CommandNode& other : tree) {
        if (other.path == path) text += fmt::format("{} -f -a {} -d {}\n", here, command, quoted(other.description));
      }
    }
    for (const CommandOption& option : node.options) {
      const std::string values = fmt::format("{}", fmt::join(option.values, " "));
      if (option.positional) {
        if (!values.empty()) text += fmt::format("{} -f -a {}\n", here, quoted(values));
        continue;
      }
      text += here;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) text += values.empty() ? " -r" : " -x -a " + quoted(values);
      text += " -d " + quoted(option.description) + "\n";
    }
  }
  return text;
}

}  // namespace weft
