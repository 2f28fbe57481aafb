#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "sim/atomic_file.h"
#include "traces/kineto_import.h"
#include "traces/trace_file.h"
#include "traces/trace_info.h"

namespace weft {

namespace {

struct ImportArguments {
  std::vector<std::string> files;
  std::string output;
};

int import(const ImportArguments& arguments) {
  exit_on_interrupt();
  const std::vector<std::filesystem::path> files(arguments.files.begin(), arguments.files.end());
  const Trace trace = import_kineto(files);
  {
    const InterruptsHeld held;
    write_trace(trace, arguments.output);
  }
  print_output(trace_info_text(trace));
  return 0;
}

}  // namespace

void add_import_command(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("import", "Bring a recorded run into weft's own trace format");
  command->require_subcommand(1);
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* kineto = command->add_subcommand("kineto", "What PyTorch's profiler writes");
  kineto->add_option("FILE", arguments->files, "Profiles, plain, gzip or zstd; several files are the ranks of one run")
      ->required();
  kineto->add_option("-o,--output", arguments->output, "Trace to write; compressed when it ends in .gz")->required();
  kineto->footer(
      "Examples:\n  weft import kineto profile.json.gz -o trace.json.gz\n"
      "  weft import kineto rank0.json.gz rank1.json.gz -o trace.json.gz");
  kineto->callback([arguments, &chosen] { chosen = [arguments] { return import(*arguments); }; });
}

}  // namespace weft
