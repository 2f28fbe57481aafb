// The reducing hardware of one switch. Plain data. A port here is a physical one: a lane of a link bundle.
#pragma once

#include <array>
#include <cstdint>

#include "network/reducer.h"
#include "sim/program.h"
#include "sim/units.h"
#include "switch_reduce/accumulation.h"

namespace weft {

inline constexpr std::size_t kDataTypes = 9;

// Adders of a port: pipelined, one operand of `bits` a cycle.
struct AdderSpec {
  std::uint32_t per_port = 1;
  std::uint32_t bits = 128;  // of data
  Frequency clock;
  // Elements that an adder takes a cycle, by DataType; 0: none of that type are reduced here.
  std::array<std::uint32_t, kDataTypes> lanes{};

  [[nodiscard]] std::uint32_t lanes_of(DataType type) const { return lanes.at(static_cast<std::size_t>(type)); }
};

struct ReduceSpec {
  std::int64_t table_bytes_per_port = 0;  // pull: of the port that the request comes in by; push: of the home port
  std::uint32_t entry_bytes = 144;        // a packet under reduction and its bookkeeping
  AdderSpec adders;
  Time latency;  // from the last operand's last flit in an adder to the reduced packet
  TableArbitration arbitration = TableArbitration::fifo;
  std::uint32_t group_entries = 0;  // of a port, at most, for one group; 0: all
  std::uint32_t max_groups = 0;     // multicast groups that a switch knows; 0: any number
  std::uint32_t fan_in = 255;       // contributions that an entry counts: GPUs of a group
  Time timeout;                     // push: a sum that nothing came to for so long is evicted; 0: never
  AccumulationSpec accumulation;
};

}  // namespace weft
