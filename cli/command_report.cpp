#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/report_folder.h"
#include "cli/terminal.h"
#include "sim/atomic_file.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string folder;
  std::string output;
};

int report(const ReportArguments& arguments) {
  const fs::path folder(arguments.folder);
  const fs::path file = arguments.output.empty() ? folder / "report.html" : fs::path(arguments.output);
  write_file_atomically(file, folder_report_html(folder, fs::absolute(file).parent_path()));
  print_output(file.string() + "\n");
  return 0;
}

}  // namespace

void add_report_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "One page from a run, a comparison or a sweep");
  command->add_option("DIR", arguments->folder, "Folder that weft run, compare or sweep wrote")->required();
  command->add_option("-o,--output", arguments->output, "The page (default: DIR/report.html)");
  command->callback([arguments, &chosen] { chosen = [arguments] { return report(*arguments); }; });
}

}  // namespace weft
