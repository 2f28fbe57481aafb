#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/output/terminal.h"
#include "sim/atomic_file.h"
#include "traces/capture/capture_import.h"
#include "traces/chakra_import.h"
#include "traces/execution_import.h"
#include "traces/kineto_import.h"
#include "traces/nsys/nsys_import.h"
#include "traces/trace_file.h"
#include "traces/trace_info.h"

namespace weft {

namespace {

struct ImportArguments {
  std::vector<std::string> files;
  std::string output;
};

using Importer = Trace (*)(const std::vector<std::filesystem::path>& files, std::vector<std::string>& notes);

int import(const ImportArguments& arguments, Importer importer) {
  exit_on_interrupt();
  const std::vector<std::filesystem::path> files(arguments.files.begin(), arguments.files.end());
  std::vector<std::string> notes;
  const Trace trace = importer(files, notes);
  for (const std::string& note : notes) fmt::print(stderr, "weft: note: {}\n", note);
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
  const auto add = [&](const char* name, const char* what, const char* files, const char* examples, Importer importer) {
    auto arguments = std::make_shared<ImportArguments>();
    CLI::App* format = command->add_subcommand(name, what);
    format->add_option("FILE", arguments->files, files)->required();
    format->add_option("-o,--output", arguments->output, "Trace to write; packed when it ends in .gz or .zst")
        ->required();
    format->footer(examples);
    format->callback(
        [arguments, importer, &chosen] { chosen = [arguments, importer] { return import(*arguments, importer); }; });
  };
  add("kineto", "What PyTorch's profiler writes",
      "Profiles, plain, gzip or zstd; several files are the ranks of one run",
      "Examples:\n  weft import kineto profile.json.gz -o trace.json.gz\n"
      "  weft import kineto rank0.json.gz rank1.json.gz -o trace.json.gz",
      import_kineto);
  add("pytorch-et", "Execution traces of PyTorch, with what its profiler wrote of the same ranks",
      "For each rank an execution trace and a profile, in any order, plain or packed",
      "An execution trace has operators, tensors and process groups, but neither times nor kernels.\n"
      "Examples:\n  weft import pytorch-et et.json.gz profile.json.gz -o trace.json.gz\n"
      "  weft import pytorch-et et_*.json.gz kineto_*.json.gz -o trace.json.gz",
      import_execution_traces);
  add("chakra", "Chakra execution traces", "Traces, binary or JSON; several files are the ranks of one run",
      "Examples:\n  weft import chakra run.0.et run.1.et -o trace.json.gz", import_chakra);
  add("capture", "Records of weft capture that it did not join itself",
      "Folders of records, or their files; all are one run",
      "Examples:\n  weft import capture trace.json.gz.capture -o trace.json.gz", import_capture);
  add("nsys", "What Nsight Systems records",
      "SQLite exports; several files are of one run, each GPU that a process uses is a rank",
      "Record and export with\n"
      "  nsys profile --trace=cuda,nvtx --cuda-event-trace=true -o report PROGRAM\n"
      "  nsys export --type sqlite --include-blobs=true report.nsys-rep\n"
      "Examples:\n  weft import nsys report.sqlite -o trace.json.gz",
      import_nsys);
}

}  // namespace weft
