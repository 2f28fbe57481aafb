// Victims launched alone, and nothing else: for a profiler to look at, as `weft capture --counters`.
#include <cstdio>

#include "bench/gpu/suites/victim_bench.h"

namespace weft::gpu_probe {

namespace {

// The first one loads code.
constexpr unsigned kLaunches = 2;

}  // namespace

void run_launch(Session& session) {
  VictimBench bench(session);
  for (const Victim& victim : victims()) {
    if (!session.options.selection.takes(victim)) continue;
    if (session.is_over()) return;
    std::printf("%s\n", victim.name.c_str());
    static_cast<void>(bench.prepare(victim, kLaunches));
  }
}

}  // namespace weft::gpu_probe
