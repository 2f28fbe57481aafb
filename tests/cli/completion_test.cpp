// The manual page and the shells' completions: every command and option that --help shows is in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/run_weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string output_of(const std::string& arguments) {
  const TemporaryFolder folder;
  const Ran ran = weft(arguments, folder);
  EXPECT_EQ(ran.code, 0) << arguments << ran.errors;
  return ran.output;
}

// Of a help text: the lines of a section, each its first words.
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> names;
  const std::size_t at = help.find("Subcommands:");
  if (at == std::string::npos) return names;
  const std::string section = help.substr(at, help.find("\n\n", at) - at);
  const std::regex line("\n  ([a-z-]+) ");
  for (std::sregex_iterator i(section.begin(), section.end(), line), end; i != end; ++i) names.push_back((*i)[1]);
  return names;
}

std::set<std::string> options_of(const std::string& help) {
  std::set<std::string> names;
  const std::regex line("\n  (?:-[a-z],)?(--[A-Za-z-]+)");
  for (std::sregex_iterator i(help.begin(), help.end(), line), end; i != end; ++i) names.insert((*i)[1]);
  return names;
}

// All commands, with what --help says of them.
std::vector<std::pair<std::string, std::string>> all_help() {
  std::vector<std::pair<std::string, std::string>> pages{{"", output_of("--help")}};
  for (std::size_t i = 0; i < pages.size(); ++i) {
    for (const std::string& command : commands_of(pages[i].second)) {
      const std::string path = pages[i].first.empty() ? command : pages[i].first + " " + command;
      pages.emplace_back(path, output_of(path + " --help"));
    }
  }
  return pages;
}

TEST(Help, OfEveryCommandHasAnExample) {
  const auto pages = all_help();
  EXPECT_GT(pages.size(), 12U);
  for (const auto& [path, help] : pages) {
    if (!commands_of(help).empty() && !path.empty()) continue;  // those below it have one
    EXPECT_THAT(help, HasSubstr("Examples:\n  "));
    EXPECT_THAT(help, HasSubstr("weft " + path));
  }
}

TEST(Completion, AndTheManualPageHaveEveryCommandAndOption) {
  const std::string bash = output_of("completion bash");
  const std::string zsh = output_of("completion zsh");
  const std::string fish = output_of("completion fish");
  const std::string man = output_of("completion man");
  std::size_t options = 0;
  for (const auto& [path, help] : all_help()) {
    SCOPED_TRACE(path);
    std::string in_man = path;  // where hyphens are escaped
    for (std::size_t at = 0; (at = in_man.find('-', at)) != std::string::npos; at += 2) in_man.insert(at, "\\");
    EXPECT_THAT(man, HasSubstr(path.empty() ? ".TH WEFT 1" : ".SS \\fBweft " + in_man + "\\fR"));
    const std::string here = "'" + path + "') if [[ $current == -* ]]; then choices='";
    for (const std::string* script : {&bash, &zsh}) {
      const std::size_t from = script->find(here);
      ASSERT_NE(from, std::string::npos);
      const std::string words = " " + script->substr(from + here.size(), script->find('\n', from) - from - here.size());
      for (const std::string& name : options_of(help))
        EXPECT_THAT(words, ::testing::ContainsRegex("[ ']" + name + "[ ']"));
      for (const std::string& name : commands_of(help)) EXPECT_THAT(words, HasSubstr(name));
    }
    for (const std::string& name : options_of(help)) {
      ++options;
      EXPECT_THAT(fish, ::testing::ContainsRegex("\"" + path + "\"'[^\n]* -l " + name.substr(2) + " "));
      EXPECT_THAT(man, HasSubstr(std::regex_replace(name, std::regex("-"), "\\-")));
    }
  }
  EXPECT_GT(options, 40U);
}

// What bash offers for a command line, the last word being completed.
std::string completed(const std::string& line) {
  const TemporaryFolder folder;
  folder.write("weft.bash", output_of("completion bash"));
  folder.write("ask", ". ./weft.bash; COMP_WORDS=(" + line +
                          "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weft; "
                          "echo \"${COMPREPLY[*]}\"");
  const std::string file = (folder.path() / "out").string();
  const std::string command = "cd '" + folder.path().string() + "' && bash ask >'" + file + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string text = read_file(file);
  return text.substr(0, text.find('\n'));
}

TEST(Completion, OfBashKnowsWhereItIs) {
  EXPECT_EQ(completed("weft comp"), "compare completion");
  EXPECT_EQ(completed("weft import k"), "kineto");
  EXPECT_EQ(completed("weft list sy"), "systems");
  EXPECT_EQ(completed("weft collective x.json --protocol L"), "LL LL128");
  EXPECT_EQ(completed("weft run x.json --no"), "--no-progress");
  EXPECT_EQ(completed("weft trace compare a b --g"), "--gpu");
  EXPECT_EQ(completed("weft run ''"), "");  // a file
  EXPECT_EQ(completed("weft run x.json -o ''"), "");
}

bool is_here(const std::string& shell) { return std::system(("command -v " + shell + " >/dev/null").c_str()) == 0; }

// What `script` prints, run by `shell` in a folder that has the completion as `file`.
std::string said_by(const std::string& shell, const std::string& file, const std::string& script) {
  const TemporaryFolder folder;
  folder.write(file, output_of("completion " + shell));
  folder.write("ask", script);
  const std::string command =
      "cd '" + folder.path().string() + "' && HOME=$PWD timeout 60 " + shell + " ask >said 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_file(folder.path() / "said");
}

TEST(Completion, OfZshAnswersTab) {
  if (!is_here("zsh")) GTEST_SKIP() << "zsh is not here (install_deps.sh --test)";
  // An interactive zsh on a terminal of its own; control-X shows the command line.
  EXPECT_EQ(said_by("zsh", "_weft", R"(zmodload zsh/zpty
zpty shell TERM=dumb zsh -f -i
zpty -w shell "unset zle_bracketed_paste; fpath=($PWD \$fpath); autoload -U compinit; compinit -u -D; _say() { print -r -- \"is:\$BUFFER:\"; BUFFER= }; zle -N _say; bindkey '^X' _say; print rea''dy"
zpty -r shell out '*ready*'
for line in 'weft sw' 'weft collective x.json --protocol LL1'; do
  zpty -w -n shell $line$'\t\x18'
  zpty -r shell out '*is:*:*'
  print -r -- "${${out##*is:}%%:*}"
done
)"),
            "weft sweep \nweft collective x.json --protocol LL128 \n");
}

TEST(Completion, OfFishKnowsWhereItIs) {
  if (!is_here("fish")) GTEST_SKIP() << "fish is not here (install_deps.sh --test)";
  const std::string said = said_by("fish", "weft.fish", R"(source weft.fish
complete -C 'weft sw'
complete -C 'weft list sys'
complete -C 'weft run x.json --fid')");
  EXPECT_THAT(said, ::testing::MatchesRegex("sweep\t[^\n]*\nsystems\n--fidelity\t[^\n]*\n"));
}

}  // namespace
}  // namespace weft
