#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/compare_cases.h"
#include "cli/commands/run_options.h"
#include "cli/commands/summary.h"
#include "cli/config/run_config.h"
#include "cli/output/result_json.h"
#include "cli/output/staged_directory.h"
#include "cli/output/terminal.h"
#include "cli/report/report_html.h"
#include "cli/sweep/child_processes.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

struct CompareArguments {
  std::vector<std::string> configs;
  std::vector<std::string> schemes;
  std::vector<std::string> algorithms;
  std::vector<std::string> movers;
  RunOptions options;
  std::string output;
  std::optional<std::size_t> jobs;
  bool json = false;
};

using LabelledResults = std::vector<std::pair<std::string, Json>>;

std::size_t default_jobs(const RunOptions& options) {
  return std::max(1U, std::thread::hardware_concurrency() / std::max(1U, options.threads.value_or(1)));
}

Arguments run_arguments(const CompareCase& one, const fs::path& directory) {
  Arguments arguments{"run", one.config.string(), "--no-progress", "-o", (directory / one.label).string()};
  for (const auto& set : one.sets) {
    arguments.emplace_back("--set");
    arguments.push_back(set);
  }
  return arguments;
}

Json comparison_document(const LabelledResults& results) {
  Json rows = Json::array();
  for (const auto& result : results) rows.push_back({{"label", result.first}, {"result", result.second}});
  return {{"rows", std::move(rows)}};
}

// The comparison's folder: one of each run, report.html and comparison.json.
void write_comparison(const LabelledResults& results, const fs::path& directory) {
  std::vector<fs::path> run_directories;
  for (const auto& result : results) run_directories.push_back(directory / result.first);
  write_file_atomically(directory / "report.html", comparison_report_html(results, run_directories, directory));
  write_file_atomically(directory / "comparison.json", json_text(comparison_document(results)));
}

int compare(const CompareArguments& arguments) {
  const std::vector<CompareCase> cases = compare_cases(arguments.configs, arguments.schemes, arguments.algorithms,
                                                       arguments.movers, all_sets(arguments.options));
  for (const auto& one : cases) static_cast<void>(read_run_config(one.config, one.sets));

  const bool keep = !arguments.output.empty();
  if (keep) check_output_directory(arguments.output);
  StagedDirectory staged(keep ? fs::path(arguments.output) : fs::temp_directory_path() / "weft-compare");

  std::vector<Arguments> commands;
  commands.reserve(cases.size());
  for (const auto& one : cases) commands.push_back(run_arguments(one, staged.path()));
  ProgressBar bar(true);
  const int code =
      run_children(commands, arguments.jobs.value_or(default_jobs(arguments.options)), [&](std::size_t ended) {
        bar.update(static_cast<double>(ended) / static_cast<double>(cases.size()),
                   fmt::format("{} of {} runs done", ended, cases.size()));
      });
  bar.finish();
  if (code != 0) return code;

  LabelledResults results;
  for (const auto& one : cases) {
    const fs::path file = staged.path() / one.label / "result.json";
    results.emplace_back(one.label, parse_json(read_file(file), file.string()));
  }
  const std::string table = comparison_table(results, color_wanted());
  if (keep) {
    write_comparison(results, staged.path());
    staged.commit();
  }
  print_output(arguments.json ? json_text(comparison_document(results)) : table);
  if (keep && !arguments.json) print_output("report: " + (fs::path(arguments.output) / "report.html").string() + "\n");
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand("compare", "Run the same work under several configurations, as one table");
  command->add_option("CONFIG", arguments->configs, "Configurations")->required();
  command->add_option("--schemes", arguments->schemes, "Schemes to compare, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--all-reduce", arguments->algorithms, "All-reduce algorithms to compare, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--movers", arguments->movers, "Movers of all-reduces to compare, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_run_options(*command, arguments->options);
  command->add_option("-o,--output", arguments->output, "Folder for report.html and the folder of each run");
  command
      ->add_option("-j,--jobs", arguments->jobs,
                   "Simulations at a time (default: as many as their threads leave cores for)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "Print JSON instead of a table");
  command->footer(
      "Examples:\n"
      "  weft compare configs/experiments/resnet50_overlap.json --all-reduce ring,in_switch -o out/overlap\n"
      "  weft compare before.json after.json");
  command->callback([arguments, &chosen] { chosen = [arguments] { return compare(*arguments); }; });
}

}  // namespace weft
