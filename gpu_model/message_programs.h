// An all-reduce in chunks that routers sum: each block loads its share of the message and contributes it, line by line,
// in a stream of its own; a store is done when its sum has come back. Nobody waits for anybody else, so there is no
// barrier: what has not been contributed keeps its chunk from being complete.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu_model/collective_kernel.h"
#include "gpu_model/phase.h"

namespace weft {

struct MessagePlace {
  std::uint16_t group = 0;
  std::uint32_t channels = 1;  // blocks, and streams of the group
  std::uint32_t warps = 1;     // of a block
  std::uint32_t lines_per_round = 16;
  std::int64_t bytes = 0;
  std::int64_t send_address = 0;
  std::int64_t receive_address = 0;
};

// The same on all ranks.
[[nodiscard]] std::shared_ptr<const BlockPrograms> message_programs(const MessagePlace& place);

// On blocks of the library, as many as a ring has unless the wish says how many. Throws InputError where the network
// does not sum this collective.
[[nodiscard]] CollectivePlan plan_in_network(const CollectiveContext& context, const CollectiveDemand& demand,
                                             const CollectiveWish& wish);

}  // namespace weft
