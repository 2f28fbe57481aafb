#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/output/chrome_trace.h"
#include "cli/output/run_trace.h"
#include "cli/output/terminal.h"
#include "cli/output/trace_timeline.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "traces/chakra_weft.h"
#include "traces/trace_file.h"

namespace weft {

namespace {

struct ExportArguments {
  std::string run, output;
  bool chrome = false;
};

// A run is a folder, a trace is a file.
int export_perfetto(const ExportArguments& arguments) {
  exit_on_interrupt();
  const std::filesystem::path run = arguments.run;
  if (!std::filesystem::exists(run)) throw MissingInput(run.string());
  const bool is_run = std::filesystem::is_directory(run);
  const std::filesystem::path file = is_run ? run / "timeline.pftrace" : run;
  const std::string trace = is_run ? read_file(file) : trace_timeline(read_trace(file));
  std::string chrome;
  // Of a run also when it is not wanted: it reads all of the timeline.
  if (is_run || arguments.chrome) chrome = chrome_trace(trace, file.string());
  const InterruptsHeld held;
  write_file_atomically(arguments.output, arguments.chrome ? chrome : trace);
  return 0;
}

int export_trace(const ExportArguments& arguments) {
  exit_on_interrupt();
  const Trace trace = trace_of_run(arguments.run);
  const InterruptsHeld held;
  write_trace(trace, arguments.output);
  return 0;
}

struct ChakraArguments {
  std::string trace, prefix;
};

int export_to_chakra(const ChakraArguments& arguments) {
  exit_on_interrupt();
  const Trace trace = read_trace(arguments.trace);
  std::vector<std::string> notes;
  const InterruptsHeld held;
  const std::vector<std::filesystem::path> files = export_chakra(trace, arguments.prefix, notes);
  for (const std::string& note : notes) fmt::print(stderr, "weft: note: {}\n", note);
  std::string written;
  for (const std::filesystem::path& file : files) written += file.string() + "\n";
  print_output(written);
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("export", "Write a run or a trace for other tools");
  command->require_subcommand(1);
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* perfetto = command->add_subcommand("perfetto", "The timeline, for ui.perfetto.dev and trace_processor");
  perfetto->add_option("TRACE_OR_RUN", arguments->run, "A trace in weft's format, or the folder of a run (weft run -o)")
      ->required();
  perfetto->add_option("-o,--output", arguments->output, "File to write")->required();
  perfetto->add_flag("--chrome", arguments->chrome, "JSON of Chrome's trace event format instead");
  perfetto->footer(
      "Examples:\n  weft export perfetto out/run -o run.pftrace\n"
      "  weft export perfetto trace.json.gz -o trace.pftrace\n"
      "  weft export perfetto out/run --chrome -o run.json");
  perfetto->callback([arguments, &chosen] { chosen = [arguments] { return export_perfetto(*arguments); }; });

  auto of_run = std::make_shared<ExportArguments>();
  CLI::App* trace = command->add_subcommand("trace", "A run as a trace in weft's format, with its simulated times");
  trace->add_option("RUN", of_run->run, "Folder of a run (weft run -o)")->required();
  trace->add_option("-o,--output", of_run->output, "Trace to write; packed when it ends in .gz or .zst")->required();
  trace->footer(
      "Examples:\n  weft export trace out/run -o trace.json.gz\n"
      "  weft export chakra trace.json.gz -o out/run");
  trace->callback([of_run, &chosen] { chosen = [of_run] { return export_trace(*of_run); }; });

  auto of_trace = std::make_shared<ChakraArguments>();
  CLI::App* chakra = command->add_subcommand("chakra", "A trace as Chakra execution traces, for ASTRA-sim");
  chakra->add_option("TRACE", of_trace->trace, "A trace in weft's format")->required();
  chakra
      ->add_option("-o,--output", of_trace->prefix,
                   "PREFIX of the files: PREFIX.0.et for rank 0, ..., and PREFIX.groups.json for communicator groups")
      ->required();
  chakra->footer("Examples:\n  weft export chakra trace.json.gz -o out/run");
  chakra->callback([of_trace, &chosen] { chosen = [of_trace] { return export_to_chakra(*of_trace); }; });
}

}  // namespace weft
