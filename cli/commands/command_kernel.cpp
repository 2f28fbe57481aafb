#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/kernel_info.h"
#include "cli/commands/run_options.h"
#include "cli/config/run_config.h"
#include "cli/output/result_json.h"
#include "cli/output/terminal.h"
#include "cli/run/programs.h"
#include "sim/error.h"

namespace weft {

namespace {

struct KernelArguments {
  std::string config;
  std::string name;
  bool json = false;
  RunOptions options;
};

int print_kernels(const KernelArguments& arguments) {
  exit_on_interrupt();
  const RunConfig config = read_run_config(std::filesystem::path(arguments.config), all_sets(arguments.options));
  std::vector<std::string> notes;
  const std::vector<Program> programs = make_programs(config, notes);
  const Json info = kernel_info_json(programs.front(), config.system.gpu, arguments.name);
  if (info["kernels"].empty()) {
    throw InputError(arguments.config, "/workload",
                     arguments.name.empty()
                         ? "expected a workload with kernels, got none"
                         : "expected a kernel with \"" + arguments.name + "\" in its name, got none");
  }
  print_output(arguments.json ? json_text(info) : kernel_info_text(info));
  return 0;
}

}  // namespace

void add_kernel_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<KernelArguments>();
  CLI::App* command = app.add_subcommand("kernel", "Warp programs of a workload's kernels: occupancy, rounds, pipes");
  command->add_option("CONFIG", arguments->config, "Configuration (JSON)")->required();
  command->add_option("NAME", arguments->name, "Only kernels with this in their name");
  command->add_flag("--json", arguments->json, "Print JSON");
  add_run_options(*command, arguments->options);
  command->footer(
      "Examples:\n"
      "  weft kernel experiment.json gemm\n"
      "  weft kernel experiment.json --json");
  command->callback([arguments, &chosen] { chosen = [arguments] { return print_kernels(*arguments); }; });
}

}  // namespace weft
