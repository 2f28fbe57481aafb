#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/run_options.h"
#include "cli/commands/summary.h"
#include "cli/config/run_config.h"
#include "cli/output/result_json.h"
#include "cli/output/result_writer.h"
#include "cli/output/terminal.h"
#include "cli/run/simulate.h"
#include "sim/atomic_file.h"

namespace weft {

namespace {

struct RunArguments {
  std::string config;
  std::string output;
  RunOptions options;
  std::string keep = "all";
  bool json = false;
  bool no_progress = false;
};

int run(const RunArguments& arguments) {
  exit_on_interrupt();
  const RunConfig config = read_run_config(std::filesystem::path(arguments.config), all_sets(arguments.options));
  if (!arguments.output.empty()) check_output_directory(arguments.output);

  ProgressBar bar(!arguments.no_progress);
  const RunResult result =
      simulate(config, [&](double fraction, const std::string& stage) { bar.update(fraction, stage); });
  bar.finish();

  if (!arguments.output.empty()) {
    const InterruptsHeld held;
    write_run_directory(result, arguments.output, arguments.keep == "all" ? RunFiles::all : RunFiles::result);
  }
  print_output(arguments.json ? json_text(result_to_json(result)) : run_summary(result, color_wanted()));
  return 0;
}

}  // namespace

void add_run_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run one simulation");
  command->add_option("CONFIG", arguments->config, "Configuration")->required();
  command->add_option(
      "-o,--output", arguments->output,
      "Folder for result.json, config.json, kernels.csv, counters.csv, timeline.pftrace and report.html");
  command->add_option("--keep", arguments->keep, "all, or result: of these only result.json and config.json")
      ->check(CLI::IsMember({"all", "result"}));
  add_run_options(*command, arguments->options);
  command->add_flag("--json", arguments->json, "Print result.json instead of a summary");
  command->add_flag("--no-progress", arguments->no_progress, "No progress bar");
  command->footer(
      "Examples:\n"
      "  weft run experiment.json -o out/run\n"
      "  weft run experiment.json --set network.link.bandwidth_GBps=50 --set gpus=4 --json");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace weft
