#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/run_options.h"
#include "cli/config/run_config.h"
#include "cli/config/sample_config.h"
#include "cli/output/terminal.h"
#include "cli/run/memory_check.h"
#include "cli/run/programs.h"
#include "cli/sweep/plan.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "traces/trace_file.h"
#include "workloads/single_sample/attention_check.h"
#include "workloads/single_sample/temporal_reference.h"

namespace weft {

namespace {

struct ValidateArguments {
  std::string file;
  bool values = false;
  RunOptions options;
};

enum class FileKind { configuration, sweep, trace };

// A trace is compressed, or says by its schema what it is; a sweep has a base or varies something; everything else is
// taken for a configuration.
FileKind kind_of(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return FileKind::configuration;
  std::ifstream stream(file, std::ios::binary);
  std::array<char, 2> magic{};
  stream.read(magic.data(), magic.size());
  if (magic[0] == '\x1f' && magic[1] == '\x8b') return FileKind::trace;
  if (file.extension() == ".gz") return FileKind::trace;
  const Json document = parse_json(read_file(file), file.string());
  if (!document.is_object()) return FileKind::configuration;
  if (document.contains("schema")) return FileKind::trace;
  return is_sweep(document) ? FileKind::sweep : FileKind::configuration;
}

std::string workload_name(const RunConfig& config) {
  if (const auto* trace = std::get_if<TraceWorkload>(&config.workload)) return trace->file;
  if (const auto* model = std::get_if<ModelWorkload>(&config.workload)) return model->model;
  if (std::holds_alternative<AttentionWorkload>(config.workload)) return "attention";
  if (std::holds_alternative<ProductWorkload>(config.workload)) return "a distributed product";
  if (std::holds_alternative<TemporalWorkload>(config.workload)) return "convolutions along time";
  const auto& collective = std::get<CollectiveWorkload>(config.workload);
  return fmt::format("{} of {} B", to_string(collective.kind), collective.bytes.count());
}

// Multiplications of the reference: it takes seconds.
constexpr double kMostProducts = 2e9;
// Of results in FP32, as a share of the largest number of their kind.
constexpr double kClose = 1e-5;

void refuse_large(double products, const char* what, std::int64_t got, const std::string& file) {
  if (products <= kMostProducts) return;
  throw InputError(file, "/workload/sequence",
                   fmt::format("expected {} of {:g} at most for --values, got {}", what, kMostProducts, got));
}

ValueErrors value_errors(const RunConfig& config, const std::string& file) {
  SampleSplit split = sample_split(config, 0);
  const std::uint32_t ranks = split.size();
  split.gpus.clear();
  if (const auto* temporal = std::get_if<TemporalWorkload>(&config.workload)) {
    const TemporalShape& shape = temporal->shape;
    const auto channels = static_cast<double>(std::max(shape.channels, shape.skip_channels));
    refuse_large(
        static_cast<double>(temporal->sequence * temporal->batch * shape.layers * shape.kernel) * channels * channels,
        "sequence * batch * layers * kernel * channels^2", temporal->sequence, file);
    return check_temporal(shape, {split, temporal->sequence, temporal->batch}, ranks, config.seed);
  }
  const auto& attention = std::get<AttentionWorkload>(config.workload);
  const AttentionGeometry geometry = geometry_of(attention);
  const auto tokens = static_cast<double>(geometry.tokens);
  refuse_large(tokens * tokens * static_cast<double>(attention.hidden * geometry.batch), "sequence^2 * hidden * batch",
               geometry.tokens, file);
  return check_attention(geometry, split, ranks, config.seed);
}

int check_values(const RunConfig& config, const std::string& file) {
  if (!std::holds_alternative<AttentionWorkload>(config.workload) &&
      !std::holds_alternative<TemporalWorkload>(config.workload)) {
    throw InputError(file, "/workload/model", "expected \"attention\" or \"temporal_convolution\" for --values");
  }
  bool close = true;
  for (const auto& [name, error] : value_errors(config, file)) {
    print_output(fmt::format("  {:<20} {:.1e}\n", name, error));
    close = close && error < kClose;
  }
  if (close) return 0;
  print_error(fmt::format("results differ from a single GPU's by more than {:g} of the largest", kClose));
  return 70;
}

// A line, of workloads that say what they hold; else empty. Makes the programs, which checks the rest of what is asked.
std::string memory_line(const RunConfig& config) {
  if (std::holds_alternative<TraceWorkload>(config.workload)) return "";
  std::vector<std::string> notes;
  RunResult result;
  check_memory(config, make_programs(config, notes), result);
  const auto most = std::max_element(
      result.gpus.begin(), result.gpus.end(),
      [](const GpuResult& a, const GpuResult& b) { return a.peak_memory_bytes < b.peak_memory_bytes; });
  if (!most->peak_memory_bytes) return "";
  constexpr double kGB = 1e9;
  return fmt::format("  {:.4g} GB of {:.4g} GB of a GPU's memory at most: {}\n",
                     static_cast<double>(*most->peak_memory_bytes) / kGB,
                     static_cast<double>(config.system.gpu.hbm.bytes) / kGB,
                     result.out_of_memory ? fmt::format("does not fit, at {}", result.out_of_memory->at) : "fits");
}

// Points whose configuration cannot be read are rows of the table with a reason, not an error of the sweep.
void validate_sweep(const ValidateArguments& arguments) {
  if (arguments.values || !all_sets(arguments.options).empty()) {
    throw InputError("validate: expected no --values, --set, --fidelity or --threads with a sweep, got one",
                     ExitCode::wrong_usage);
  }
  const Manifest manifest =
      plan_sweep(read_sweep_file(arguments.file), arguments.file, program_sha256(), [](const auto&, const auto&) {});
  print_output(fmt::format("{}: a valid sweep: {} points, {} different runs\n", arguments.file, manifest.points.size(),
                           runs_of(manifest).size()));
  std::map<std::string, std::size_t> refused;
  for (const SweepPoint& point : manifest.points) {
    if (!point.reason.empty()) ++refused[point.reason];
  }
  for (const auto& [reason, points] : refused) print_output(fmt::format("  {} cannot be run: {}\n", points, reason));
}

int validate_file(const ValidateArguments& arguments) {
  const FileKind kind = kind_of(arguments.file);
  if (kind == FileKind::sweep) {
    validate_sweep(arguments);
    return 0;
  }
  if (kind == FileKind::trace) {
    const Trace trace = read_trace(arguments.file);
    print_output(fmt::format("{}: a valid trace of {} rank{}\n", arguments.file, trace.ranks.size(),
                             trace.ranks.size() == 1 ? "" : "s"));
    return 0;
  }
  const RunConfig config = read_run_config(std::filesystem::path(arguments.file), all_sets(arguments.options));
  if (const auto* trace = std::get_if<TraceWorkload>(&config.workload)) static_cast<void>(read_trace(trace->file));
  const std::string memory = memory_line(config);
  print_output(fmt::format("{}: a valid configuration: {} on {} of {}\n{}", arguments.file, workload_name(config),
                           config.gpus == 1 ? "one GPU" : fmt::format("{} GPUs", config.gpus), config.system.name,
                           memory));
  if (arguments.values) return check_values(config, arguments.file);
  return 0;
}

}  // namespace

void add_validate_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* command = app.add_subcommand("validate", "Check a configuration, a sweep or a trace");
  command->add_option("FILE", arguments->file, "Configuration, sweep or trace")->required();
  add_run_options(*command, arguments->options);
  command->add_flag(
      "--values", arguments->values,
      "Of attention and of convolutions along time over several GPUs: carry the programs out on numbers and "
      "print how far each result is from a single GPU's");
  command->footer(
      "Examples:\n"
      "  weft validate attention.json --values\n"
      "  weft validate experiment.json --set gpus=4\n"
      "  weft validate sweep.json\n"
      "  weft validate trace.json.gz");
  command->callback([arguments, &chosen] { chosen = [arguments] { return validate_file(*arguments); }; });
}

}  // namespace weft
