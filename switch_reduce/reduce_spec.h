// The reducing hardware of one switch. Plain data.
#pragma once

#include <cstdint>

#include "sim/units.h"
#include "switch_reduce/accumulation.h"

namespace weft {

struct ReduceSpec {
  std::int64_t table_bytes_per_port = 0;  // of the reduction table of a port that requests come in by
  std::uint32_t entry_bytes = 144;        // a packet under reduction and its bookkeeping
  double adds_per_second = 0;             // FP32 additions a second of one switch
  Time latency;                           // from the last reply to the reduced packet
  AccumulationSpec accumulation;
};

}  // namespace weft
