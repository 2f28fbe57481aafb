// One function a command: adds its subcommand and options to the app, and leaves in `chosen` what to run when the user
// picks it. The function returns the exit code.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace weft {

using Command = std::function<int()>;

void add_run_command(CLI::App& app, Command& chosen);
void add_compare_command(CLI::App& app, Command& chosen);
void add_report_command(CLI::App& app, Command& chosen);
void add_collective_command(CLI::App& app, Command& chosen);
void add_calibrate_command(CLI::App& app, Command& chosen);
void add_capture_command(CLI::App& app, Command& chosen);
void add_import_command(CLI::App& app, Command& chosen);
void add_export_command(CLI::App& app, Command& chosen);
void add_trace_command(CLI::App& app, Command& chosen);
void add_validate_command(CLI::App& app, Command& chosen);
void add_kernel_command(CLI::App& app, Command& chosen);
void add_sweep_command(CLI::App& app, Command& chosen);
void add_list_command(CLI::App& app, Command& chosen);
void add_completion_command(CLI::App& app, Command& chosen);

}  // namespace weft
