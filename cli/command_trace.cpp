#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "traces/trace_file.h"
#include "traces/trace_info.h"

namespace weft {

namespace {

struct TraceInfoArguments {
  std::string trace;
  bool json = false;
};

int trace_info(const TraceInfoArguments& arguments) {
  exit_on_interrupt();
  const Trace trace = read_trace(arguments.trace);
  print_output(arguments.json ? trace_info_json(trace).dump(2) + "\n" : trace_info_text(trace));
  return 0;
}

}  // namespace

void add_trace_command(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand("trace", "Look into a trace");
  command->require_subcommand(1);
  auto arguments = std::make_shared<TraceInfoArguments>();
  CLI::App* info = command->add_subcommand("info", "Ranks, kernels, collectives, overlap and slowdown");
  info->add_option("TRACE", arguments->trace, "A trace in weft's format (weft import makes one)")->required();
  info->add_flag("--json", arguments->json, "Print JSON");
  info->callback([arguments, &chosen] { chosen = [arguments] { return trace_info(*arguments); }; });
}

}  // namespace weft
