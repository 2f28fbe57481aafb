#include "cli/sweep/slurm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/output/result_json.h"
#include "sim/atomic_file.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxArray = 1000;  // MaxArraySize is 1001 unless set otherwise (slurm.conf)
constexpr int kMaxTries = 3;             // without a run done

struct Answer {
  int code = 0;
  std::string output;
};

// Runs another program and returns its exit code and what it wrote to stdout.
Answer ask(std::vector<std::string> command) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw InternalError("cannot make a pipe");
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, pipe[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  ::close(pipe[1]);
  Answer answer;
  if (error == 0) {
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
      answer.output.append(buffer.data(), static_cast<std::size_t>(got));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  ::close(pipe[0]);
  if (error != 0) {
    throw InputError(fmt::format("--executor slurm: expected the program {}, got: {}", command[0],
                                 std::generic_category().message(error)));
  }
  return answer;
}

std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// slurm/jobs.json of a sweep's folder: what has been submitted.
class Jobs {
 public:
  Jobs(const RunStore& store, const std::vector<std::string>& keys) : store_(store), keys_(keys) {
    if (!fs::exists(file())) return;
    const Json document = parse_json(read_file(file()), file().string());
    count_ = document.at("shards").get<std::size_t>();
    jobs_ = document.at("jobs").get<std::vector<std::string>>();
  }

  [[nodiscard]] std::size_t shards() const { return count_; }
  // Nothing of earlier jobs runs any more, so the runs may be shared out anew.
  void share_out(std::size_t count) {
    count_ = count;
    jobs_.clear();
  }

  // Shards that wait in Slurm's queue or run.
  [[nodiscard]] std::set<std::size_t> alive() const {
    std::set<std::size_t> shards;
    if (jobs_.empty()) return shards;
    // Jobs that Slurm has forgotten are an error to it, unless others are asked for: then they are none.
    const Answer answer = ask({"squeue", "--noheader", "--array", "--format=%A %K %F", "--me"});
    if (answer.code != 0) throw InputError("--executor slurm: expected squeue to answer, got an error");
    std::istringstream lines(answer.output);
    for (std::string job, shard, array; lines >> job >> shard >> array;) {
      if (std::find(jobs_.begin(), jobs_.end(), array) != jobs_.end()) shards.insert(std::stoul(shard));
    }
    return shards;
  }

  // Shards with a run that is neither done nor failed, from 1.
  [[nodiscard]] std::set<std::size_t> unfinished() const {
    std::set<std::size_t> shards;
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      if (!shards.contains(k % count_ + 1) && !store_.done(keys_[k]) && !store_.failure(keys_[k])) {
        shards.insert(k % count_ + 1);
      }
    }
    return shards;
  }

  void submit(const std::set<std::size_t>& shards, const SlurmOptions& options) {
    const std::string throttle = options.throttle ? fmt::format("%{}", *options.throttle) : "";
    const Answer answer = ask({"sbatch", "--parsable", fmt::format("--array={}{}", fmt::join(shards, ","), throttle),
                               (store_.folder() / "slurm" / "sweep.sbatch").string()});
    if (answer.code != 0) {
      throw InputError(
          fmt::format("--executor slurm: expected sbatch to take the shards, got exit code {}", answer.code));
    }
    // "JOB" or "JOB;CLUSTER"
    jobs_.push_back(answer.output.substr(0, answer.output.find_first_of(";\n")));
    write_file_atomically(file(), json_text({{"shards", count_}, {"jobs", jobs_}}));
  }

 private:
  [[nodiscard]] fs::path file() const { return store_.folder() / "slurm" / "jobs.json"; }

  const RunStore& store_;
  const std::vector<std::string>& keys_;
  std::size_t count_ = 0;
  std::vector<std::string> jobs_;
};

PoolProgress progress_of(const RunStore& store, const std::vector<std::string>& keys) {
  PoolProgress now;
  now.runs = keys.size();
  for (const auto& key : keys) {
    if (store.done(key)) {
      ++now.done;
    } else if (store.failure(key)) {
      ++now.failed;
    }
  }
  return now;
}

// What the runs that are done took, in minutes; a minute where none is.
double minutes_of_a_run(const RunStore& store, const std::vector<std::string>& keys) {
  double seconds = 0;
  std::size_t done = 0;
  for (const auto& key : keys) {
    if (!store.done(key)) continue;
    seconds += store.cost(key).wall_s;
    ++done;
  }
  return done == 0 ? 1 : seconds / 60 / static_cast<double>(done);
}

}  // namespace

std::size_t shard_count(std::size_t runs, double run_minutes, std::size_t jobs, double shard_minutes) {
  constexpr double kFilled = 0.8;
  const double shards =
      std::ceil(static_cast<double>(runs) * run_minutes / (static_cast<double>(jobs) * kFilled * shard_minutes));
  return static_cast<std::size_t>(
      std::clamp(shards, 1.0, static_cast<double>(std::clamp<std::size_t>(runs, 1, kMaxArray))));
}

std::string batch_script(const SlurmOptions& options, const std::string& program, const fs::path& folder,
                         std::size_t count) {
  std::string script = "#!/bin/sh\n";
  const auto add = [&](const std::string& option) { script += "#SBATCH " + option + "\n"; };
  add("--job-name=weft-sweep");
  add(fmt::format("--output=\"{}\"", (folder / "slurm" / "shard-%a.log").string()));
  add("--open-mode=append");
  add("--requeue");  // when its node fails
  add("--ntasks=1");
  add(fmt::format("--cpus-per-task={}", options.cpus));
  add(fmt::format("--time={}", std::max(1.0, std::ceil(options.shard_minutes))));
  if (!options.partition.empty()) add("--partition=" + options.partition);
  if (!options.account.empty()) add("--account=" + options.account);
  script += fmt::format("exec {} sweep {} --shard \"$SLURM_ARRAY_TASK_ID/{}\"", in_quotes(program),
                        in_quotes(folder.string()), count);
  for (const auto& argument : options.arguments) script += " " + in_quotes(argument);
  return script + "\n";
}

void submit_shards(const RunStore& store, const std::vector<std::string>& keys, const SlurmOptions& options) {
  Jobs jobs(store, keys);
  std::set<std::size_t> alive = jobs.alive();
  if (alive.empty()) {
    const PoolProgress now = progress_of(store, keys);
    const std::size_t left = now.runs - now.done - now.failed;
    jobs.share_out(
        options.shards.value_or(shard_count(left, minutes_of_a_run(store, keys), options.cpus, options.shard_minutes)));
  }
  std::set<std::size_t> wanted = jobs.unfinished();
  for (const std::size_t shard : alive) wanted.erase(shard);
  if (wanted.empty()) return;
  std::error_code error;
  fs::create_directories(store.folder() / "slurm", error);
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  write_file_atomically(store.folder() / "slurm" / "sweep.sbatch",
                        batch_script(options, program, fs::absolute(store.folder()).lexically_normal(), jobs.shards()));
  jobs.submit(wanted, options);
}

void watch_shards(const RunStore& store, const std::vector<std::string>& keys, const SlurmOptions& options,
                  const std::function<void(const PoolProgress&)>& progress) {
  Jobs jobs(store, keys);
  std::map<std::size_t, int> tries;
  std::size_t done_before = 0;
  while (jobs.shards() > 0) {
    const std::set<std::size_t> alive = jobs.alive();  // first: what ends meanwhile has left its runs
    const PoolProgress now = progress_of(store, keys);
    progress(now);
    std::set<std::size_t> lost = jobs.unfinished();
    if (lost.empty()) return;
    for (const std::size_t shard : alive) lost.erase(shard);
    if (now.done > done_before) tries.clear();
    done_before = now.done;
    for (const std::size_t shard : lost) {
      if (++tries[shard] > kMaxTries) {
        throw InputError(
            fmt::format("--executor slurm: expected shard {} to end with its runs done, got {} ends without "
                        "(see {})",
                        shard, kMaxTries, (store.folder() / "slurm" / fmt::format("shard-{}.log", shard)).string()));
      }
    }
    if (!lost.empty()) jobs.submit(lost, options);
    std::this_thread::sleep_for(options.poll);
  }
}

}  // namespace weft
