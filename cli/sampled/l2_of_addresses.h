// What the L2 holds before an operation, guessed from the addresses of those before it.
#pragma once

#include "gpu_model/gpu_spec.h"
#include "gpu_model/l2_cache.h"
#include "sim/program.h"

namespace weft {

// What the last operations touched that fit into it, in their order. `communicates`: collectives, too.
[[nodiscard]] L2Cache l2_of_addresses(const GpuSpec& gpu, const Program& program, OpId op, bool communicates);

// What the buffer of the first rank receives of a collective: the program is that of the first GPU.
[[nodiscard]] std::int64_t bytes_received(const CollectiveDemand& collective);

}  // namespace weft
