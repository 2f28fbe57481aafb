#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/app.h"
#include "cli/commands/capture_job.h"
#include "cli/commands/commands.h"
#include "cli/config/config_paths.h"
#include "sim/atomic_file.h"
#include "sim/error.h"
#include "traces/capture/capture_import.h"
#include "traces/capture/captured_counters.h"
#include "traces/capture/record.h"
#include "traces/trace_file.h"
#include "traces/trace_info.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct CaptureArguments {
  std::string output;
  std::vector<std::string> program;
  bool counters = false;
  bool no_sampling = false;
  bool keep = false;
};

void note(const std::string& text) { fmt::print(stderr, "weft: note: {}\n", text); }

void check(const CaptureArguments& arguments) {
  if (!capture_has_cupti())
    throw InputError(
        "weft capture: expected CUPTI of CUDA 13 when weft was built, got none: install the CUDA toolkit, configure "
        "again (-DCUDAToolkit_ROOT names its folder) and build",
        ExitCode::input_missing);
  const fs::path folder = fs::absolute(arguments.output).parent_path();
  if (!fs::is_directory(folder))
    throw InputError(arguments.output, "", "expected a folder that is there, got " + folder.string());
}

void write(const Trace& trace, const CaptureArguments& arguments, const std::vector<std::string>& notes) {
  for (const std::string& text : notes) note(text);
  const InterruptsHeld held;
  write_trace(trace, arguments.output);
}

// What the records come to. Prints to stderr: stdout is the program's.
void join(const CaptureArguments& arguments, CaptureJob& job) {
  std::vector<std::string> notes;
  try {
    const Trace trace = import_capture_times({job.directory()}, notes);
    write(trace, arguments, std::exchange(notes, {}));
    fmt::print(stderr, "{}", trace_info_text(trace));
  } catch (const MissingInput&) {
    job.remove();
    throw InputError(
        std::string("weft capture: expected a program that uses a GPU, got one of which no process started CUDA") +
            (fs::exists("/proc/driver/nvidia/version") ? "" : " (there is no driver of NVIDIA here)"),
        ExitCode::input_missing);
  } catch (const InputError&) {
    for (const std::string& text : notes) note(text);
    note(fmt::format("the records stay in {}", job.directory().string()));
    throw;
  }
  if (!arguments.keep && !arguments.counters) job.remove();
}

// The trace of the first pass is written by now, so that nothing that happens here costs it.
int count(const CaptureArguments& arguments, CaptureJob& job, Variables variables) {
  CaptureJob counting = job.second_pass();
  for (auto& [name, value] : variables)
    if (name == capture::kDirectoryVariable) value = counting.directory().string();
  variables.emplace_back(capture::kCountersVariable, "1");
  note("the program runs a second time, for its counters: each kernel alone, several times over");
  if (const int status = run_program(arguments.program, variables); status != 0)
    note(fmt::format("the program's second run ended with {}: some kernels may have no counters", status));
  if (!counting.ended()) return 0;
  return run_guarded([&] {
    Trace trace = read_trace(arguments.output);
    std::vector<std::string> notes;
    join_counters(trace, counting.directory(), notes);
    write(trace, arguments, notes);
    const Json info = trace_info_json(trace);
    fmt::print(stderr, "{} of {} kernels have counters\n", info["kernels_with_counters"].get<std::int64_t>(),
               info["kernels"].get<std::int64_t>());
    if (!arguments.keep) job.remove();
    return 0;
  });
}

// Of the first pass, which records times.
Variables times_variables(Variables variables, const CaptureArguments& arguments) {
  if (arguments.counters && !arguments.no_sampling) variables.emplace_back(capture::kSamplingVariable, "1");
  return variables;
}

int run_capture(const CaptureArguments& arguments) {
  check(arguments);
  CaptureJob job(arguments.output, launched_rank());
  std::vector<std::string> notes;
  const auto variables = capture_variables(capture_library(), job.directory(), notes);
  for (const std::string& text : notes) note(text);
  int status = 0;
  try {
    status = run_program(arguments.program, times_variables(variables.value_or(Variables()), arguments));
  } catch (const InputError&) {
    job.remove();
    throw;
  }
  if (!variables) {
    job.remove();
    return status;
  }
  const bool joins = job.ended();
  const auto guarded_join = [&] {
    join(arguments, job);
    return 0;
  };
  const int joined = joins ? run_guarded(guarded_join) : 0;
  if (arguments.counters && status == 0 && joined == 0) return count(arguments, job, *variables);
  if (arguments.counters) {
    note("there is no second run for counters: the first, or the joining of its records, failed");
    if (joins && joined == 0 && !arguments.keep) job.remove();
  }
  return status != 0 ? status : joined;
}

}  // namespace

void add_capture_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CaptureArguments>();
  CLI::App* command = app.add_subcommand("capture", "Record a real run on GPUs as a trace");
  command->add_option("PROGRAM", arguments->program, "What to run, with its arguments, behind --")->required();
  command->add_option("-o,--output", arguments->output, "Trace to write; packed when it ends in .gz or .zst")
      ->required();
  CLI::Option* counters =
      command->add_flag("--counters", arguments->counters,
                        "Run the program a second time for hardware counters of its kernels, and sample what GPUs move "
                        "over time in the first");
  command
      ->add_flag("--no-sampling", arguments->no_sampling,
                 "Do not sample: the GPUs' clocks are not held, so times are those of an undisturbed run")
      ->needs(counters);
  command->add_flag("--keep", arguments->keep, "Keep the records that the trace was joined from");
  command->footer(
      "The exit code is the program's, or, where that is 0, of joining its records.\n"
      "Examples:\n"
      "  weft capture -o trace.json.gz -- python train.py\n"
      "  weft capture --counters -o trace.json.gz -- python train.py\n"
      "  weft capture -o trace.json.gz -- torchrun --nproc-per-node 8 train.py\n"
      "  srun -n 16 weft capture -o trace.json.gz -- python train.py");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_capture(*arguments); }; });
}

}  // namespace weft
