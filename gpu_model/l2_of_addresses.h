// What the L2 holds before an operation, guessed from the addresses of those before it.
#pragma once

#include "gpu_model/gpu_spec.h"
#include "gpu_model/l2_cache.h"
#include "sim/program.h"

namespace weft {

// What the L2 holds is asked of the operations before, until they have filled it; but of no more than touch this many
// times its size, since a small working set never fills it.
inline constexpr std::int64_t kLookBack = 8;

// What the last operations touched that fit into it, in their order. `communicates`: collectives, too.
[[nodiscard]] L2Cache l2_of_addresses(const GpuSpec& gpu, const Program& program, OpId op, bool communicates);

// Of one that has seen the operations before `from`: it is told of those from there to before `to`. False: it is not,
// they touch so much that nothing is left of what it had.
[[nodiscard]] bool touch_operations(const GpuSpec& gpu, const Program& program, OpId from, OpId to, bool communicates,
                                    L2Cache& l2);

// What the buffer of the first rank receives of a collective: the program is that of the first GPU.
[[nodiscard]] std::int64_t bytes_received(const CollectiveDemand& collective);

}  // namespace weft
