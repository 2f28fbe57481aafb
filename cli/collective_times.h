// What collectives take by themselves.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "cli/system_config.h"
#include "workloads/graph.h"

namespace weft {

// All that the time of a collective by itself depends on.
struct CollectiveSignature {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;
  DataType type = DataType::fp32;
  std::uint32_t root = 0;
  GpuGroup group;
  auto operator<=>(const CollectiveSignature&) const = default;
};
[[nodiscard]] CollectiveSignature signature_of(const CollectiveDemand& demand);

struct CollectiveTime {
  Time moving;   // from when the last rank's kernel starts to the last end
  Time barrier;  // the same of a barrier of its group
};
// Of each different collective of the programs, simulated one after the other. Throws InputError for those that cannot
// be planned.
[[nodiscard]] std::map<CollectiveSignature, CollectiveTime> collective_times(const RunConfig& config,
                                                                             const std::vector<Program>& programs);

// What the collectives of a recording took once all their ranks had come, by node of the graph; 0 for what is no
// collective. A recording does not tell waiting from moving, so each different collective is simulated by itself, all
// ranks together: a ring (what NCCL takes unless switches reduce) over as many GPUs of the configured system as were
// recorded, with as many channels. Throws InputError for a collective that cannot be replayed.
[[nodiscard]] std::vector<Time> recorded_collective_times(const Graph& graph, const RunConfig& config);

}  // namespace weft
