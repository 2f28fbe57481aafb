// What collectives take by themselves.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "cli/config/system_config.h"
#include "sim/program.h"

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

// Of each of `wanted` once, from the start of the last rank's kernel to the last end.
[[nodiscard]] std::map<CollectiveSignature, Time> times_by_themselves(const RunConfig& config,
                                                                      std::vector<CollectiveSignature> wanted);

struct CollectiveTime {
  Time moving;   // from when the last rank's kernel starts to the last end
  Time barrier;  // the same of a barrier of its group
};
// Of each different collective of the programs, simulated one after the other. Throws InputError for those that cannot
// be planned.
[[nodiscard]] std::map<CollectiveSignature, CollectiveTime> collective_times(const RunConfig& config,
                                                                             const std::vector<Program>& programs);

}  // namespace weft
