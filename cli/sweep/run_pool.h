// Computes the runs of a sweep on this machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep/child_processes.h"
#include "cli/sweep/run_store.h"

namespace weft {

struct PoolOptions {
  std::size_t jobs = 1;
  unsigned threads = 1;      // of each run
  ChildLimits limits;        // `errors` is not used
  std::string keep = "all";  // of each run, see `weft run --keep`
  std::chrono::seconds stale_after{60};
};

struct PoolProgress {
  std::size_t runs = 0, done = 0, failed = 0;  // of all, those of other processes included
  double seconds_left = 0;                     // expected, from what runs took; 0: not known yet
};

// Computes those of `keys` that are neither done nor failed, each in a process of its own, `jobs` at a time; one that a
// live process has claimed is waited for, and taken over should that process die. A run that fails is remembered as
// such and the others go on. Returns the number that failed. Throws Interrupted after SIGINT or SIGTERM, with nothing
// claimed any more.
std::size_t compute_runs(const RunStore& store, const std::vector<std::string>& keys, const PoolOptions& options,
                         const std::function<void(const PoolProgress&)>& progress);

}  // namespace weft
