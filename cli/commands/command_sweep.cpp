#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/run_options.h"
#include "cli/output/result_json.h"
#include "cli/output/terminal.h"
#include "cli/sweep/plan.h"
#include "cli/sweep/run_pool.h"
#include "cli/sweep/run_store.h"
#include "cli/sweep/slurm.h"
#include "cli/sweep/sweep_status.h"
#include "cli/sweep/table.h"
#include "sim/atomic_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kRunsKeptWhole = 1000;  // a run of a few milliseconds leaves about a megabyte, its result 50 KB

struct SweepArguments {
  std::string sweep, output;
  std::optional<std::size_t> jobs;
  unsigned threads = 1;
  bool resume = false;
  std::optional<double> timeout_s, memory_GiB;
  std::string shard;
  int stale_s = 60;
  std::string keep;  // empty: by the number of runs
  bool json = false;
  std::string executor = "local";
  SlurmOptions slurm;
  int poll_s = 10;
  bool detach = false;
};

struct Shard {
  std::size_t index = 0, count = 1;
};

Shard shard_of(const std::string& text) {
  if (text.empty()) return {};
  Shard shard;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  const auto second = first.ptr != end && *first.ptr == '/' ? std::from_chars(first.ptr + 1, end, shard.count) : first;
  if (first.ec != std::errc() || second.ec != std::errc() || second.ptr != end || second.ptr == first.ptr ||
      shard.index < 1 || shard.index > shard.count) {
    throw InputError("--shard " + text + ": expected I/N with I from 1 to N, got " + text, ExitCode::wrong_usage);
  }
  --shard.index;
  return shard;
}

Manifest existing_manifest(const RunStore& store) {
  auto manifest = store.manifest();
  if (!manifest) throw MissingInput((store.folder() / "manifest.json").string());
  return *std::move(manifest);
}

// What follows once the input is known to be good: what fails then, as on a full disk, is a part of the sweep.
template <class Act>
auto past_input(const Act& act) {
  try {
    return act();
  } catch (const InputError& e) {
    throw InputError(e.what(), ExitCode::sweep_part_failed);
  }
}

// The points: from the sweep file, or from the folder of a sweep given in its place.
Manifest planned(const SweepArguments& arguments, const RunStore& store) {
  const std::string program = program_sha256();
  if (fs::is_directory(arguments.sweep)) {
    Manifest manifest = existing_manifest(store);
    if (manifest.program_sha256 != program) {
      throw InputError(store.folder().string(), "",
                       "expected the program that planned this sweep, got another build "
                       "(plan it again from the sweep file with --resume)");
    }
    return manifest;
  }
  const SweepFile sweep = read_sweep_file(arguments.sweep);
  if (auto manifest = store.manifest()) {
    const bool same = manifest->sweep_sha256 == sweep_sha256(sweep, program);
    if (same && !arguments.shard.empty()) return *std::move(manifest);
    if (!arguments.resume) {
      throw InputError(fmt::format("{}: expected --resume or another folder, got one that holds {}",
                                   store.folder().string(), same ? "this sweep" : "another sweep"),
                       ExitCode::wrong_usage);
    }
  }
  Manifest manifest = plan_sweep(sweep, arguments.sweep, program, [&](const std::string& key, const Json& config) {
    past_input([&] { store.plan(key, config); });
  });
  past_input([&] { store.write_manifest(manifest); });
  return manifest;
}

// Returns the number of rows that failed.
std::size_t write_table(const Manifest& manifest, const RunStore& store) {
  const SweepTable table = sweep_table(manifest, store);
  write_file_atomically(store.folder() / "results.csv", table_csv(table));
  write_table_sqlite(table, store.folder() / "results.sqlite");
  return table.failed;
}

int finished(const Manifest& manifest, const RunStore& store, std::chrono::seconds stale_after) {
  const std::size_t failed = write_table(manifest, store);
  print_output(status_text(status_of(manifest, store, stale_after)));
  print_output(fmt::format("table: {}\n", (store.folder() / "results.csv").string()));
  return static_cast<int>(failed > 0 ? ExitCode::sweep_part_failed : ExitCode::done);
}

// What each run leaves.
std::string kept(const SweepArguments& arguments, std::size_t runs) {
  if (!arguments.keep.empty()) return arguments.keep;
  return runs <= kRunsKeptWhole ? "all" : "result";
}

PoolOptions pool_options(const SweepArguments& arguments, std::size_t runs) {
  PoolOptions options;
  options.threads = arguments.threads;
  options.jobs = arguments.jobs.value_or(std::max(1U, std::thread::hardware_concurrency() / arguments.threads));
  if (arguments.timeout_s) options.limits.timeout = std::chrono::duration<double>(*arguments.timeout_s);
  if (arguments.memory_GiB) options.limits.memory_bytes = static_cast<std::uint64_t>(*arguments.memory_GiB * 0x1p30);
  options.stale_after = std::chrono::seconds(arguments.stale_s);
  options.keep = kept(arguments, runs);
  return options;
}

// What a shard is told of this command.
SlurmOptions slurm_options(const SweepArguments& arguments, std::size_t runs) {
  SlurmOptions options = arguments.slurm;
  const std::size_t jobs = arguments.jobs.value_or(1);
  options.cpus = jobs * arguments.threads;
  options.arguments = {"-j",
                       std::to_string(jobs),
                       "--threads",
                       std::to_string(arguments.threads),
                       "--stale-after",
                       std::to_string(arguments.stale_s),
                       "--keep",
                       kept(arguments, runs)};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) options.arguments.insert(options.arguments.end(), {name, fmt::format("{}", *value)});
  };
  add("--timeout", arguments.timeout_s);
  add("--memory-GiB", arguments.memory_GiB);
  options.poll = std::chrono::seconds(arguments.poll_s);
  return options;
}

void show_progress(ProgressBar& bar, const PoolProgress& now) {
  bar.update(static_cast<double>(now.done + now.failed) / static_cast<double>(std::max<std::size_t>(1, now.runs)),
             fmt::format("{} of {} runs done{}{}", now.done, now.runs,
                         now.failed > 0 ? fmt::format(", {} failed", now.failed) : "",
                         now.seconds_left > 0 ? ", about " + duration_text(now.seconds_left) + " left" : ""));
}

int compute(const SweepArguments& arguments, const Shard& shard, const Manifest& manifest, const RunStore& store) {
  std::vector<std::string> keys;
  const std::vector<std::string> all = runs_of(manifest);
  for (std::size_t k = shard.index; k < all.size(); k += shard.count) keys.push_back(all[k]);
  if (arguments.resume) {
    for (const auto& key : keys) store.forget_failure(key);
  }
  ProgressBar bar(true);
  const auto show = [&](const PoolProgress& now) { show_progress(bar, now); };
  std::size_t failed = 0;
  if (arguments.executor == "slurm") {
    const SlurmOptions slurm = slurm_options(arguments, all.size());
    submit_shards(store, keys, slurm);
    if (arguments.detach) return 0;
    exit_on_interrupt();
    watch_shards(store, keys, slurm, show);
  } else {
    failed = compute_runs(store, keys, pool_options(arguments, all.size()), show);
  }
  bar.finish();
  if (!arguments.shard.empty()) return static_cast<int>(failed > 0 ? ExitCode::sweep_part_failed : ExitCode::done);
  return finished(manifest, store, std::chrono::seconds(arguments.stale_s));
}

int sweep(const SweepArguments& arguments) {
  const Shard shard = shard_of(arguments.shard);
  const bool from_folder = fs::is_directory(arguments.sweep);
  if (!from_folder && arguments.output.empty()) {
    throw InputError("sweep: expected -o DIR beside a sweep file, got none", ExitCode::wrong_usage);
  }
  if (arguments.executor == "slurm" && !arguments.shard.empty()) {
    throw InputError("--shard: expected --executor local, got slurm, which makes the shards", ExitCode::wrong_usage);
  }
  const RunStore store(from_folder ? arguments.sweep : arguments.output);
  check_output_directory(store.folder());
  const Manifest manifest = planned(arguments, store);

  return past_input([&] { return compute(arguments, shard, manifest, store); });
}

int merge(const SweepArguments& arguments) {
  const RunStore store(arguments.output);
  const Manifest manifest = existing_manifest(store);
  return past_input([&] { return finished(manifest, store, std::chrono::seconds(arguments.stale_s)); });
}

int show_status(const SweepArguments& arguments) {
  const RunStore store(arguments.output);
  const SweepStatus status = status_of(existing_manifest(store), store, std::chrono::seconds(arguments.stale_s));
  print_output(arguments.json ? json_text(status_json(status)) : status_text(status));
  return 0;
}

void add_slurm_options(CLI::App& command, SweepArguments& arguments) {
  command.add_option("--executor", arguments.executor, "local, or slurm: shards as an array of jobs")
      ->check(CLI::IsMember({"local", "slurm"}));
  command.add_option("--shards", arguments.slurm.shards, "Of Slurm: how many (default: by --shard-minutes)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--shard-minutes", arguments.slurm.shard_minutes, "Of Slurm: time limit of a shard")
      ->check(CLI::PositiveNumber);
  command.add_option("--throttle", arguments.slurm.throttle, "Of Slurm: shards at a time")->check(CLI::PositiveNumber);
  command.add_option("--partition", arguments.slurm.partition, "Of Slurm");
  command.add_option("--account", arguments.slurm.account, "Of Slurm");
  command.add_option("--poll", arguments.poll_s, "Of Slurm: time between looks at the queue")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  command.add_flag("--detach", arguments.detach, "Of Slurm: submit and end; lost shards wait for --resume");
}

void add_folder_command(CLI::App& sweep, const char* name, const char* description, int (*act)(const SweepArguments&),
                        const std::shared_ptr<SweepArguments>& arguments, Command& chosen) {
  CLI::App* command = sweep.add_subcommand(name, description);
  command->add_option("DIR", arguments->output, "Folder of a sweep")->required();
  command->add_option("--stale-after", arguments->stale_s, "As of the sweep")->type_name("SECONDS");
  if (act == show_status) command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, act, &chosen] { chosen = [arguments, act] { return act(*arguments); }; });
}

}  // namespace

void add_sweep_command(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand("sweep", "Run a batch over parameters, as one table");
  command->add_option("SWEEP", arguments->sweep, "Sweep file; or the folder of a sweep, to go on with it");
  command->add_option("-o,--output", arguments->output, "Folder for the table, the manifest and the runs");
  command->add_option("-j,--jobs", arguments->jobs, "Runs at a time (default: all cores)")->check(CLI::PositiveNumber);
  command->add_option("--threads", arguments->threads, "Threads of each run")->check(CLI::PositiveNumber);
  command->add_flag("--resume", arguments->resume, "Go on in a folder that holds a sweep; try again what failed");
  command->add_option("--timeout", arguments->timeout_s, "End a run that takes longer")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  command->add_option("--memory-GiB", arguments->memory_GiB, "Address space that a run may have")
      ->type_name("GIB")
      ->check(CLI::PositiveNumber);
  command->add_option("--shard", arguments->shard, "Only every Nth run, from the Ith on")->type_name("I/N");
  command
      ->add_option("--keep", arguments->keep,
                   "Of each run all files, or its result (default: all of up to 1000 runs, else results)")
      ->check(CLI::IsMember({"all", "result"}));
  command->add_option("--stale-after", arguments->stale_s, "Take over the run of a machine that was silent for so long")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  add_slurm_options(*command, *arguments);
  add_folder_command(*command, "merge", "Write the table of what is done so far", merge, arguments, chosen);
  add_folder_command(*command, "status", "Say how far a sweep is", show_status, arguments, chosen);
  command->callback([command, arguments, &chosen] {
    if (!command->get_subcommands().empty()) return;
    if (arguments->sweep.empty()) throw CLI::RequiredError("SWEEP");
    chosen = [arguments] { return sweep(*arguments); };
  });
}

}  // namespace weft
