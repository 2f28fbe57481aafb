// A table for tests.
#pragma once

#include "switch_reduce/reduce_spec.h"

namespace weft {

// Three entries a port; 32 additions (a line of FP32) take 1 ns, as do 64 of FP16.
inline ReduceSpec table(std::int64_t entries = 3) {
  ReduceSpec spec;
  spec.entry_bytes = 128;
  spec.table_bytes_per_port = entries * 128 + 127;
  spec.adders.bits = 1024;
  spec.adders.clock = megahertz(1000);
  spec.adders.lanes.fill(32);
  spec.adders.lanes[static_cast<std::size_t>(DataType::fp16)] = 64;
  spec.latency = nanoseconds(10);
  return spec;
}

}  // namespace weft
