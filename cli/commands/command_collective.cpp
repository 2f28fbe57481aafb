#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/run_options.h"
#include "cli/config/collective_config.h"
#include "cli/config/run_config.h"
#include "cli/config/system_of.h"
#include "cli/output/result_json.h"
#include "cli/output/staged_directory.h"
#include "cli/output/terminal.h"
#include "cli/sweep/child_processes.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kElementBytes = 4;  // nccl-tests' default type: float

struct CollectiveArguments {
  std::string config;
  std::string collective = "all_reduce";
  std::int64_t min = 1 << 10;
  std::int64_t max = 1 << 30;
  double factor = 2;
  std::string algorithm = "auto";
  std::string algorithm_file;
  std::uint32_t root = 0;
  std::string protocol = "auto";
  std::uint32_t channels = 0;
  RunOptions options;
  std::optional<std::size_t> jobs;
  bool json = false;
};

struct Row {
  std::int64_t size = 0;
  double time_us = 0, algbw_GBps = 0, busbw_GBps = 0;
  std::string algorithm, protocol;
  std::uint32_t channels = 0;
};

// nccl-tests warms up, then times the mean of a series. The simulated series repeats itself sooner, and long messages
// depend least on what comes before.
constexpr std::uint32_t kWarmUp = 1;
std::uint32_t timed(std::int64_t bytes) { return bytes <= 1 << 20 ? 3 : bytes <= 16 << 20 ? 2 : 1; }

// Where the size is that of all ranks' parts together (nccl-tests' doc/PERFORMANCE.md, gather.cu, scatter.cu).
bool has_parts(const std::string& collective) {
  return collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all" ||
         collective == "gather" || collective == "scatter";
}

// Sizes are what nccl-tests calls size: of all_gather the output. Parts of ranks are whole elements. A barrier has one.
std::vector<std::int64_t> sizes(const CollectiveArguments& arguments, std::uint32_t gpus) {
  if (arguments.collective == "barrier") return {0};
  const std::int64_t unit = kElementBytes * (has_parts(arguments.collective) ? gpus : 1);
  std::vector<std::int64_t> sizes;
  for (auto size = static_cast<double>(arguments.min); size <= static_cast<double>(arguments.max);
       size *= arguments.factor) {
    const std::int64_t whole = std::max<std::int64_t>(1, static_cast<std::int64_t>(size) / unit) * unit;
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
  }
  return sizes;
}

std::vector<std::string> sets_of(const CollectiveArguments& arguments, std::uint32_t gpus, std::int64_t size) {
  std::vector<std::string> sets = all_sets(arguments.options);
  const bool joins = arguments.collective == "all_gather" || arguments.collective == "gather";
  const Json workload{{"collective", arguments.collective},
                      {"bytes", arguments.collective == "barrier" ? 0
                                : joins                           ? size / gpus
                                                                  : size},
                      {"root", arguments.root}};
  sets.push_back("workload=" + workload.dump());
  sets.push_back(fmt::format("iterations={}", kWarmUp + timed(size)));
  if (arguments.algorithm != "auto") sets.push_back("all_reduce.algorithm=" + Json(arguments.algorithm).dump());
  if (!arguments.algorithm_file.empty()) {
    sets.push_back("all_reduce.algorithm_file=" + Json(arguments.algorithm_file).dump());
  }
  if (arguments.protocol != "auto") sets.push_back("all_reduce.protocol=" + Json(arguments.protocol).dump());
  if (arguments.channels > 0) sets.push_back(fmt::format("all_reduce.channels={}", arguments.channels));
  return sets;
}

// The steady period: the time between ends, after the warm-up. So the host's issue hides behind the collective before,
// or is what takes the time.
Row row_of(const Json& result, std::int64_t size) {
  const Json& series = result.at("collectives");
  if (result.at("status") != "ok") {
    const Json& notes = result.at("notes");
    throw InputError(fmt::format("{} B: expected collectives that end, got status {}{}", size,
                                 result.at("status").dump(),
                                 notes.empty() ? "" : ". " + notes.back().get<std::string>()));
  }
  WEFT_CHECK(series.size() == kWarmUp + timed(size), "every collective of the series ended");
  const Json& last = series.back();
  Row row;
  row.size = size;
  const double seconds = last.at("end_s").get<double>() - series.at(kWarmUp - 1).at("end_s").get<double>();
  row.time_us = seconds / timed(size) * 1e6;
  row.algbw_GBps = static_cast<double>(size) / row.time_us * 1e-3;
  if (size > 0) {
    row.busbw_GBps = row.algbw_GBps * last.at("busbw_GBps").get<double>() / last.at("algbw_GBps").get<double>();
  }
  row.algorithm = last.at("algorithm");
  row.protocol = last.at("protocol");
  row.channels = last.at("channels");
  return row;
}

std::string redop(const std::string& collective) {
  return collective == "all_reduce" || collective == "reduce_scatter" || collective == "reduce" ? "sum" : "none";
}

std::string table(const std::vector<Row>& rows, const std::string& collective) {
  std::size_t width = 10;
  for (const Row& row : rows) width = std::max(width, row.algorithm.size());
  std::string text = fmt::format("{:>12} {:>12} {:>6} {:>6} {:>10} {:>9} {:>9} {:>{}} {:>9} {:>9}\n", "size", "count",
                                 "type", "redop", "time", "algbw", "busbw", "algorithm", width, "protocol", "channels");
  text += fmt::format("{:>12} {:>12} {:>6} {:>6} {:>10} {:>9} {:>9}\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
                      "(GB/s)");
  for (const Row& row : rows) {
    text += fmt::format("{:>12} {:>12} {:>6} {:>6} {:>10.2f} {:>9.2f} {:>9.2f} {:>{}} {:>9} {:>9}\n", row.size,
                        row.size / kElementBytes, "float", redop(collective), row.time_us, row.algbw_GBps,
                        row.busbw_GBps, row.algorithm, width, row.protocol, row.channels);
  }
  return text;
}

Json document(const std::vector<Row>& rows, const std::string& collective) {
  Json out = Json::array();
  for (const Row& row : rows) {
    out.push_back({{"size", row.size},
                   {"count", row.size / kElementBytes},
                   {"type", "float"},
                   {"redop", redop(collective)},
                   {"time_us", row.time_us},
                   {"algbw_GBps", row.algbw_GBps},
                   {"busbw_GBps", row.busbw_GBps},
                   {"algorithm", row.algorithm},
                   {"protocol", row.protocol},
                   {"channels", row.channels}});
  }
  return {{"rows", std::move(out)}};
}

// One process a size: an engine runs once a process.
int collective(const CollectiveArguments& arguments) {
  if (arguments.min > arguments.max) {
    throw InputError(fmt::format("--min: expected at most --max, {}, got {}", arguments.max, arguments.min));
  }
  const Json read = load_configuration(arguments.config);  // once: it may come from a pipe
  const auto config_of = [&](std::uint32_t gpus, std::int64_t size) {
    Json with_size = read;
    for (const auto& set : sets_of(arguments, gpus, size)) apply_set(with_size, set, arguments.config);
    return read_run_config(with_size, arguments.config);
  };
  const std::uint32_t gpus = config_of(1, kElementBytes).gpus;
  const std::vector<std::int64_t> all = sizes(arguments, gpus);
  StagedDirectory staged(fs::temp_directory_path() / "weft-collective");
  std::vector<Arguments> commands;
  for (const std::int64_t size : all) {
    const std::string folder = (staged.path() / std::to_string(size)).string();
    write_file_atomically(folder + ".json", config_of(gpus, size).resolved.dump());
    commands.push_back({"run", folder + ".json", "--no-progress", "-o", folder});
  }
  std::reverse(commands.begin(), commands.end());  // the longest first, so that none of them is alone at the end
  ProgressBar bar(true);
  const std::size_t jobs = arguments.jobs.value_or(std::max<std::size_t>(1, std::thread::hardware_concurrency()));
  const int code = run_children(commands, jobs, [&](std::size_t ended) {
    bar.update(static_cast<double>(ended) / static_cast<double>(all.size()),
               fmt::format("{} of {} sizes done", ended, all.size()));
  });
  bar.finish();
  if (code != 0) return code;
  std::vector<Row> rows;
  for (const std::int64_t size : all) {
    const fs::path file = staged.path() / std::to_string(size) / "result.json";
    rows.push_back(row_of(parse_json(read_file(file), file.string()), size));
  }
  print_output(arguments.json ? json_text(document(rows, arguments.collective)) : table(rows, arguments.collective));
  return 0;
}

}  // namespace

void add_collective_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<CollectiveArguments>();
  CLI::App* command = app.add_subcommand("collective", "Time one collective over sizes, as a table like nccl-tests'");
  command->add_option("CONFIG", arguments->config, "Configuration; a workload in it is not used")->required();
  command->add_option("--collective", arguments->collective, "Which (default: all_reduce)")
      ->check(CLI::IsMember(collective_names()));
  const CLI::AsSizeValue size(false);  // 1K, 1KB and 1KiB are 1024 B
  command->add_option("--min", arguments->min, "Smallest size, e.g. 1KiB")->transform(size);
  command->add_option("--max", arguments->max, "Largest size, e.g. 1GiB")->transform(size);
  command->add_option("--factor", arguments->factor, "From one size to the next")->check(CLI::Range(1.001, 1e9));
  std::vector<std::string> algorithms = all_reduce_algorithm_names();
  command->add_option("--algorithm", arguments->algorithm, "One that the collective has; auto: the library's choice")
      ->check(CLI::IsMember(algorithms));
  command->add_option("--algorithm-file", arguments->algorithm_file,
                      "An algorithm of your own: weft's JSON or MSCCL's XML");
  command->add_option("--root", arguments->root, "Of broadcast, reduce, gather and scatter; who sends in send_receive");
  command->add_option("--protocol", arguments->protocol, "auto, Simple, LL or LL128")
      ->check(CLI::IsMember(protocol_names()));
  command->add_option("--channels", arguments->channels, "Thread blocks (default: what the library would take)")
      ->check(CLI::PositiveNumber);
  add_run_options(*command, arguments->options);
  command->add_option("-j,--jobs", arguments->jobs, "Simulations at a time (default: as many as cores)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "Print JSON instead of a table");
  command->footer(
      "Examples:\n"
      "  weft collective experiment.json --collective all_reduce --min 1KiB --max 256MiB\n"
      "  weft collective experiment.json --algorithm-file all_pairs_8.xml");
  command->callback([arguments, &chosen] { chosen = [arguments] { return collective(*arguments); }; });
}

}  // namespace weft
