#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/output/terminal.h"
#include "cli/report/report_folder.h"
#include "cli/report/report_pictures.h"
#include "sim/atomic_file.h"
#include "sim/error.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string folder;
  std::string output;
  std::string picture;  // "all", or the name of one; empty: the page
  SweepChoice choice;
};

// NAME.svg, NAME.dat and NAME.gp of each figure asked for.
int write_pictures(const ReportArguments& arguments) {
  const fs::path folder(arguments.folder);
  const fs::path target = arguments.output.empty() ? folder / "figures" : fs::path(arguments.output);
  std::string names;
  std::vector<Figure> asked;
  for (Figure& figure : folder_figures(folder, arguments.choice)) {
    names += (names.empty() ? "" : ", ") + figure.name;
    if (arguments.picture == "all" || arguments.picture == figure.name) asked.push_back(std::move(figure));
  }
  if (asked.empty()) {
    throw InputError(arguments.folder, "",
                     "expected a figure that it has (all, " + names + "), got " + arguments.picture);
  }
  std::error_code error;
  fs::create_directories(target, error);
  if (error) throw InputError(target.string(), "", "expected a folder that can be made, got: " + error.message());
  for (const Figure& figure : asked) {
    write_file_atomically(target / (figure.name + ".dat"), figure_data(figure));
    write_file_atomically(target / (figure.name + ".gp"), figure_gnuplot(figure));
    write_file_atomically(target / (figure.name + ".svg"), figure_svg(figure));
    print_output((target / (figure.name + ".svg")).string() + "\n");
  }
  return 0;
}

int report(const ReportArguments& arguments) {
  if (!arguments.picture.empty()) return write_pictures(arguments);
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
  command->add_option("-o,--output", arguments->output,
                      "The page (default: DIR/report.html); with --svg a folder (default: DIR/figures)");
  command->add_option("--svg", arguments->picture, "A figure, or all: NAME.svg, and NAME.gp with NAME.dat for gnuplot");
  command->add_option("--x", arguments->choice.x, "Figures of a sweep: over this parameter")->needs("--svg");
  command->add_option("--by", arguments->choice.by, "A curve, or a row of the heat map, for each value of it")
      ->needs("--svg");
  command->add_option("--metric", arguments->choice.metric, "The metric shown")->needs("--svg");
  command->add_option("--against", arguments->choice.against, "The other metric of the Pareto front")->needs("--svg");
  command->callback([arguments, &chosen] { chosen = [arguments] { return report(*arguments); }; });
}

}  // namespace weft
