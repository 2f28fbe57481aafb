// Channels and protocol of sends and receives as NCCL takes them, for which it does not ask its tuner: each message to a
// peer goes by a few channels, by more where it is long (src/enqueue.cc, scheduleP2pTasksToPlan and addP2pToPlan, about
// 2.25: later versions count LL's bytes by the channels that a message takes, not by those that it may have).
#pragma once

#include <cstdint>

#include "network/collective_spec.h"

namespace weft {

struct SendQuery {
  std::int64_t bytes = 0;  // to one peer
  std::uint32_t ranks = 0;
  std::uint32_t links_per_gpu = 0;
  std::uint32_t nodes = 1;
  std::uint32_t channels = 0;  // asked for; 0: the library's own
};

// Of all sends: a power of two.
[[nodiscard]] std::uint32_t channels_of_sends(const CollectiveSpec& library, const SendQuery& query);

// LL or Simple.
[[nodiscard]] CollectiveProtocol protocol_of_sends(const CollectiveSpec& library, const SendQuery& query);

// Of one message.
[[nodiscard]] std::uint32_t channels_to_peer(const CollectiveSpec& library, const SendQuery& query,
                                             CollectiveProtocol protocol);

}  // namespace weft
