// A sweep on a cluster: an array of shards under Slurm, watched from the folder that all share.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep/run_pool.h"
#include "cli/sweep/run_store.h"

namespace weft {

struct SlurmOptions {
  std::size_t cpus = 1;                 // of a shard
  std::vector<std::string> arguments;   // of each `weft sweep DIR --shard I/N`
  std::optional<std::size_t> shards;    // else as many as take `shard_minutes` each
  double shard_minutes = 60;            // Slurm's time limit of a shard
  std::optional<std::size_t> throttle;  // shards at a time, at most
  std::string partition, account;       // empty: Slurm's default
  std::chrono::seconds poll{10};
};

// The number of shards for runs that take `run_minutes`, `jobs` at a time: each is filled to four fifths of its limit,
// the rest is for runs that take longer than others.
[[nodiscard]] std::size_t shard_count(std::size_t runs, double run_minutes, std::size_t jobs, double shard_minutes);

// The batch script of shards 1 to `count`. `program` and `folder` are where every node finds them.
[[nodiscard]] std::string batch_script(const SlurmOptions& options, const std::string& program,
                                       const std::filesystem::path& folder, std::size_t count);

// Submits the shards that have something left to do and are not under way already, and returns. The script and the
// numbers of the jobs are in the folder's slurm/. Throws InputError when Slurm refuses.
void submit_shards(const RunStore& store, const std::vector<std::string>& keys, const SlurmOptions& options);

// Until all runs are done or have failed: submits those shards again that ended without, because their node was lost or
// their time was up. Throws InputError when a shard ends three times without a run done.
void watch_shards(const RunStore& store, const std::vector<std::string>& keys, const SlurmOptions& options,
                  const std::function<void(const PoolProgress&)>& progress);

}  // namespace weft
