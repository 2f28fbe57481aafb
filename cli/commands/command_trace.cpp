#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/trace_compare.h"
#include "cli/commands/trace_steps.h"
#include "cli/output/kernels_csv_reader.h"
#include "cli/output/result_json.h"
#include "cli/output/terminal.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/hash.h"
#include "traces/packed_file.h"
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

struct TraceCompareArguments {
  std::string trace;
  std::string run;
  std::uint32_t gpu = 0;
  bool json = false;
};

std::vector<double> iterations_of(const std::filesystem::path& result_file) {
  const Json result = parse_json(read_file(result_file), result_file.string());
  const Json::json_pointer times("/iteration/per_iteration");
  const bool found = result.contains(times) && result.at(times).is_array() && !result.at(times).empty() &&
                     std::ranges::all_of(result.at(times), [](const Json& time) { return time.is_number(); });
  if (!found)
    throw InputError(result_file.string(), times.to_string(), "expected the seconds of each iteration, got none");
  return result.at(times).get<std::vector<double>>();
}

// The trace that the run in this folder replayed. Refused where its content was another one.
std::string replayed_trace(const Json& config, const std::filesystem::path& run, const std::filesystem::path& trace) {
  const std::string config_file = (run / "config.json").string();
  const Json::json_pointer at("/workload/trace");
  if (!config.contains(at) || !config.at(at).is_string())
    throw InputError(config_file, at.to_string(),
                     fmt::format("expected a run that replayed {}, got one of no trace", trace.string()));
  const auto replayed = config.at(at).get<std::string>();
  const std::string result_file = (run / "result.json").string();
  const Json result = parse_json(read_file(result_file), result_file);
  const auto content = result.find("trace_sha256");
  if (content == result.end() || !content->is_string())
    throw InputError(result_file, "/trace_sha256", "expected the trace's content as a hash, got none");
  if (content->get<std::string>() != sha256(read_packed(trace)))
    throw InputError(
        config_file, at.to_string(),
        fmt::format("expected a run that replayed {}, got one of {}, of other content", trace.string(), replayed));
  return replayed;
}

Json comparison_of(const TraceCompareArguments& arguments) {
  const std::filesystem::path run = arguments.run;
  const Trace trace = read_trace(arguments.trace);
  const std::string file = (run / "kernels.csv").string();
  const std::vector<OperationRecord> rows = read_kernels_csv(file);
  const std::string config_file = (run / "config.json").string();
  const Json config = parse_json(read_file(config_file), config_file);
  const std::string replayed = replayed_trace(config, run, arguments.trace);
  const std::vector<double> iterations = iterations_of(run / "result.json");
  const Json::json_pointer chosen_at("/workload/rank");
  std::optional<std::uint32_t> chosen;
  if (config.contains(chosen_at)) chosen = config.at(chosen_at).get<std::uint32_t>();
  try {
    Json comparison =
        compare_with_trace(trace, replayed_rank(trace, chosen, arguments.gpu, file), rows, arguments.gpu, file);
    comparison["steps"] = compare_steps(trace, chosen, rows, iterations, file);
    return comparison;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} ({}; the run is of {})", error.what(), arguments.trace, replayed));
  }
}

int trace_compare(const TraceCompareArguments& arguments) {
  exit_on_interrupt();
  const Json comparison = comparison_of(arguments);
  print_output(arguments.json ? json_text(comparison)
                              : trace_comparison_text(comparison) + steps_text(comparison["steps"]));
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
  info->footer("Examples:\n  weft trace info trace.json.gz --json");
  info->callback([arguments, &chosen] { chosen = [arguments] { return trace_info(*arguments); }; });

  auto compared = std::make_shared<TraceCompareArguments>();
  CLI::App* compare =
      command->add_subcommand("compare", "A run that replayed a trace against the trace, kernel by kernel");
  compare->add_option("TRACE", compared->trace, "A trace in weft's format")->required();
  compare->add_option("RUN", compared->run, "Folder of the run (weft run -o)")->required();
  compare->add_option("--gpu", compared->gpu, "The GPU of the run to compare (default: 0)");
  compare->add_flag("--json", compared->json, "Print JSON instead of a table");
  compare->footer("Examples:\n  weft trace compare trace.json.gz out/replay --gpu 1");
  compare->callback([compared, &chosen] { chosen = [compared] { return trace_compare(*compared); }; });
}

}  // namespace weft
