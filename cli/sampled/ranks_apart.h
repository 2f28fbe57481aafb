// Ranks of a trace, each with a program of its own, sampled: what runs by itself takes what is known of it, what runs
// beside something else is simulated in detail.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/run/result.h"
#include "cli/run/scripts.h"

namespace weft {

// Programs that differ, of a trace. Fills `result` but for its engine's wall time and memory.
//
// A kernel with a recorded time alone takes that time, and a collective with nothing beside it ends as long after its
// last rank has come as the same collective does by itself. All begin as such; where then two of them meet on a GPU,
// they are in detail from then on (the kernels with demands fitted, or read from the file), and the run is made again,
// until no others meet. Shifts always are in detail. Traffic of HBM and links is only that of what is in detail.
void simulate_ranks_apart(const RunConfig& config, std::vector<Program>& programs, const Scripts& scripts,
                          const std::function<void(double, const std::string&)>& progress, RunResult& result);

// How much longer than by itself each collective of `programs` took from when its last rank came, for what ran beside
// it; by operation of GPU 0. Found in one run after that which tells what meets.
[[nodiscard]] std::vector<Time> longer_beside_kernels(const RunConfig& config, std::vector<Program>& programs,
                                                      const std::function<void(double, const std::string&)>& progress);

}  // namespace weft
