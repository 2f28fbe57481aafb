// The steps of a ring collective on one rank and channel, as NCCL's Simple protocol makes them
// (src/device/all_reduce.h, runRing; src/device/prims_simple.h, genericOp): loops over the message, chunks that travel
// round the ring, slices of a chunk that are passed on as soon as they have come. Offsets and sizes in bytes of the
// buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "network/collective_spec.h"
#include "sim/program.h"

namespace weft {

// One slice: what the rank does with it. `receives` from the rank before, `sends` to the rank after.
struct RingSlice {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool receives = false;
  bool uses_input = false;  // reads its own input: to send it, or to add it to what it received
  bool keeps = false;       // writes its output
  bool sends = false;
};

// Whether ring_schedule knows the collective: all_reduce, all_gather, reduce_scatter, broadcast (from rank 0).
[[nodiscard]] bool ring_supports(CollectiveKind kind);

// `bytes` is the whole buffer: of all_gather the output, of reduce_scatter the input.
[[nodiscard]] std::vector<RingSlice> ring_schedule(CollectiveKind kind, const RingSpec& spec, std::int64_t bytes,
                                                   std::uint32_t rank, std::uint32_t ranks, std::uint32_t channel,
                                                   std::uint32_t channels);

}  // namespace weft
