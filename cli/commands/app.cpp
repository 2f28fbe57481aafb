#include "cli/commands/app.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>

#include "cli/commands/commands.h"
#include "cli/config/config_paths.h"
#include "cli/output/terminal.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr const char* kExamples = R"(Examples:
  weft compare configs/experiments/resnet50_overlap.json --all-reduce ring,in_switch -o out/overlap
  weft run experiment.json --set network.link.bandwidth_GBps=50 --set gpus=4 -o out/run
  weft sweep configs/sweeps/resnet50_network.json -o out/sweep
  weft collective experiment.json --collective all_reduce --min 1KiB --max 256MiB
  weft report out/run
  weft capture -o trace.json.gz -- python train.py
  weft import kineto profile.json.gz -o trace.json.gz
  weft trace info trace.json.gz
  weft export perfetto out/run --chrome -o timeline.json
  weft calibrate trace.json.gz --system dgx-a100 -o demands.json.gz
  weft kernel experiment.json gemm
  weft list systems

Exit codes: 0 done, 2 wrong usage, 65 bad configuration or trace, 66 input missing, 70 internal error,
75 part of a sweep failed, 130 interrupted.)";

int report(const std::string& message, ExitCode code) {
  print_error(message);
  return static_cast<int>(code);
}

}  // namespace

int run_guarded(const std::function<int()>& command) {
  try {
    return command();
  } catch (const InputError& e) {
    return report(e.what(), e.code());
  } catch (const Interrupted&) {
    return report("interrupted", ExitCode::interrupted);
  } catch (const std::bad_alloc&) {
    return report("expected enough memory for this simulation, got too little", ExitCode::internal_error);
  } catch (const std::exception& e) {
    return report(std::string("internal error: ") + e.what(), ExitCode::internal_error);
  }
}

int run_app(int argc, const char* const* argv) {
  CLI::App app("weft simulates training on several GPUs whose network can reduce.", "weft");
  app.set_version_flag("--version", "weft " + version());
  app.require_subcommand(1);
  app.footer(kExamples);
  Command chosen;
  add_run_command(app, chosen);
  add_compare_command(app, chosen);
  add_sweep_command(app, chosen);
  add_report_command(app, chosen);
  add_collective_command(app, chosen);
  add_capture_command(app, chosen);
  add_import_command(app, chosen);
  add_export_command(app, chosen);
  add_trace_command(app, chosen);
  add_calibrate_command(app, chosen);
  add_kernel_command(app, chosen);
  add_validate_command(app, chosen);
  add_list_command(app, chosen);
  add_completion_command(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return report(std::string(e.what()) + " (weft --help shows the usage)", ExitCode::wrong_usage);
  }
  return run_guarded(chosen);
}

}  // namespace weft
