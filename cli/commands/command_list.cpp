#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/config/collective_config.h"
#include "cli/config/network_json.h"
#include "cli/config/sample_config.h"
#include "cli/config/system_json.h"
#include "cli/output/terminal.h"
#include "sim/config_file.h"
#include "workloads/model_zoo.h"

namespace weft {

namespace {

struct ListArguments {
  std::string what;
  bool json = false;
};

struct Entry {
  std::string name, description;
};

std::vector<Entry> presets(const std::string& folder) {
  std::vector<Entry> entries;
  for (const auto& name : preset_names(folder)) {
    const Json document = load_config(preset_path(folder, name));
    entries.push_back({name, document.value("description", "")});
  }
  return entries;
}

std::vector<Entry> model_entries() {
  std::vector<Entry> entries;
  entries.push_back({"attention", "layers of attention with projections, of any shape; forward and backward"});
  entries.push_back({"temporal_convolution", "stacked convolutions along time, of any shape: plain, TCN or WaveNet"});
  entries.push_back({"distributed_product", "a product of matrices whose rows are distributed: nt, all or tn"});
  for (const auto& model : models()) entries.push_back({model.name, model.description});
  return entries;
}

using Lister = std::function<std::vector<Entry>()>;

const std::map<std::string, Lister>& listers() {
  static const std::map<std::string, Lister> all{
      {"systems", [] { return presets("systems"); }},
      {"switch_reduce", [] { return presets("switch_reduce"); }},
      {"links", [] { return presets("links"); }},
      {"models", model_entries},
      {"schemes",
       [] {
         std::vector<Entry> entries;
         for (const auto& [scheme, name] : scheme_table()) entries.push_back({name, describe(scheme)});
         return entries;
       }},
      {"collectives",
       [] {
         std::vector<Entry> entries;
         for (const auto& [kind, name] : collective_table()) {
           entries.push_back({name, fmt::format("algorithms: {}", fmt::join(algorithm_names_for(kind), ", "))});
         }
         return entries;
       }},
      {"topologies",
       [] {
         std::vector<Entry> entries;
         for (const auto& [name, description] : topology_descriptions()) entries.push_back({name, description});
         return entries;
       }},
  };
  return all;
}

int list(const ListArguments& arguments) {
  const std::vector<Entry> entries = listers().at(arguments.what)();
  Json out = Json::array();
  std::string text;
  std::size_t width = 0;
  for (const auto& entry : entries) width = std::max(width, entry.name.size());
  for (const auto& entry : entries) {
    out.push_back({{"name", entry.name}, {"description", entry.description}});
    text += fmt::format("{:<{}}  {}\n", entry.name, width, entry.description);
  }
  print_output(arguments.json ? out.dump(2) + "\n" : text);
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ListArguments>();
  std::vector<std::string> names;
  for (const auto& lister : listers()) names.push_back(lister.first);
  CLI::App* command = app.add_subcommand("list", "What there is to choose from");
  command->add_option("WHAT", arguments->what, "What to list")->required()->check(CLI::IsMember(names));
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  weft list systems\n"
      "  weft list collectives --json");
  command->callback([arguments, &chosen] { chosen = [arguments] { return list(*arguments); }; });
}

}  // namespace weft
