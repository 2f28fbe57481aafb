#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/calibration_report.h"
#include "cli/commands/commands.h"
#include "cli/config/run_config.h"
#include "cli/output/result_json.h"
#include "cli/output/terminal.h"
#include "cli/run/demands_file.h"
#include "cli/run/programs.h"
#include "gpu_model/alone.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"
#include "traces/trace_file.h"

namespace weft {

namespace {

struct CalibrateArguments {
  std::string trace;
  std::string system;
  std::string output;
  std::vector<std::string> sets;
  std::uint32_t jobs = std::max(1U, std::thread::hardware_concurrency());
  bool json = false;
};

// All iterations of the trace, on as many GPUs as it has ranks: kernels are then those of any run that replays it.
RunConfig config_of(const CalibrateArguments& arguments) {
  const Trace trace = read_trace(arguments.trace);
  Json document;
  document["system"] = arguments.system.ends_with(".json") ? load_config(arguments.system) : Json(arguments.system);
  document["workload"]["trace"] = std::filesystem::absolute(arguments.trace).string();
  document["iterations"] = std::max<std::size_t>(trace.ranks.front().iterations.size(), 1);
  for (const std::string& set : arguments.sets) apply_set(document, set, "--set");
  const bool one_rank = document["workload"].contains("rank");
  if (!document.contains("gpus")) document["gpus"] = one_rank ? 1 : trace.ranks.size();
  return read_run_config(document, "--system");
}

int calibrate_trace(const CalibrateArguments& arguments) {
  exit_on_interrupt();
  const RunConfig config = config_of(arguments);
  std::vector<std::string> notes;
  const std::vector<Program> all = make_programs(config, notes);
  const std::span<const Program> programs = distinct_kernels(all);
  const DemandsOrigin origin = demands_origin(std::get<TraceWorkload>(config.workload), config.system, programs);
  ProgressBar bar(true);
  std::int64_t transactions = 0;
  const std::vector<std::vector<DemandFit>> fits = run_kernels_alone(
      programs, config.system.gpu, arguments.jobs, [&](double share) { bar.update(share, "kernels alone"); },
      transactions);
  bar.finish();
  {
    const InterruptsHeld held;
    write_demands(arguments.output, origin, programs, fits);
  }
  Json report = calibration_report(programs, fits);
  report["memory_transactions"] = transactions;
  print_output(arguments.json ? json_text(report) : calibration_text(report));
  return 0;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit the demand of each kernel of a trace to its time alone");
  command->add_option("TRACE", arguments->trace, "A trace in weft's format (weft import makes one)")->required();
  command->add_option("--system", arguments->system, "A system (weft list systems), or a file of one")->required();
  command
      ->add_option("-o,--output", arguments->output,
                   "File of demands to write, for \"workload\": {\"demands\": FILE}; compressed when it ends in .gz")
      ->required();
  command->add_option("--set", arguments->sets, "Override a value of the system, e.g. gpu.clock_MHz=1200")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command->add_option("-j,--jobs", arguments->jobs, "Threads (default: all cores); the demands do not depend on them")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "Print JSON instead of a table");
  command->footer(
      "Examples:\n"
      "  weft calibrate trace.json.gz --system dgx-a100 -o demands.json.gz");
  command->callback([arguments, &chosen] { chosen = [arguments] { return calibrate_trace(*arguments); }; });
}

}  // namespace weft
