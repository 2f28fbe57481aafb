// Routers that sum chunks of messages, and the transport of the endpoints that send them. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/units.h"
#include "switch_reduce/reduce_spec.h"

namespace weft {

struct AggregationSpec {
  std::uint32_t slots = 0;         // of a router; the streams of all groups that it sums for share them evenly
  std::uint32_t slot_bytes = 144;  // a chunk under reduction and its bookkeeping
  AdderSpec adders;                // of each lane
  Time latency;                    // from the last operand's last flit in an adder to the sum
  std::uint32_t window = 0;        // chunks of a group that an endpoint has under way; its streams share them evenly
  Time timeout;                    // after which an endpoint sends a chunk again; 0: never
  double loss = 0;                 // probability that a link loses a packet

  [[nodiscard]] std::uint32_t window_of(std::uint32_t streams) const { return std::max(1U, window / streams); }
};

}  // namespace weft
