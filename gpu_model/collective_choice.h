// What a collective on compute units is done by: the tuner's question and answer, and what the group, the network and
// the user leave of them.
#pragma once

#include "gpu_model/collective_kernel.h"
#include "network/group_rings.h"
#include "network/protocol.h"
#include "network/tuner.h"

namespace weft {

struct CollectiveChoice {
  TunerChoice tuned;        // algorithm, protocol and channels that it takes
  ProtocolShape shape;      // of that protocol; of all but in_switch
  Bytes bytes{0};           // as many it is cut as (CollectiveWish::even_messages)
  bool user = false;        // by CollectiveWish::user_algorithm
  bool is_ring = false;     // of the library
  bool registered = false;  // on the user's buffers
  bool fell_back = false;   // it would be in the switch, had the context no `switch_fault`
};

// `nodes`: of the demand's group. Throws InputError for in_switch where it cannot be.
[[nodiscard]] CollectiveChoice choose_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                                                 const CollectiveWish& wish, const NodesOfGroup& nodes);

}  // namespace weft
