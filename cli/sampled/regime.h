// What a stretch of a program did in detail, to be used again where the same comes back: from a moment at which the GPU
// was quiet to the next one. A kernel by itself is such a stretch, a collective with the kernels beside it another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_model/gpu_work.h"

namespace weft {

// What the network did for one GPU, or in one switch: sums over the stretch.
struct LinkLoad {
  std::int64_t payload_bytes = 0, wire_bytes = 0, packets = 0;
  std::int64_t busy = 0, busiest = 0, stalled = 0;  // fs; busiest: in one statistics period
  std::int64_t queue_high_water = 0;
};
struct SwitchLoad {
  std::int64_t reduced_bytes = 0, multicast_bytes = 0, table_high_water_bytes = 0;
  std::int64_t stalled = 0, adders_busy = 0;  // fs
  std::int64_t entries_opened = 0, refused = 0, wasted_replies = 0, evicted = 0, timed_out = 0;
  double entry_seconds = 0;
  std::vector<std::int64_t> stalled_by_table;  // fs
};

struct Regime {
  struct Operation {
    SubCycle duration = 0;  // -1: it had ended before, or has not by now
    KernelLedger ledger;
    SubCycle early = 0;   // so much less than `duration`, that of the first or the last GPU, it takes in the mean
    SubCycle behind = 0;  // of `duration`, until its first block got a unit: others' came before
    SubCycle late = 0;    // so much later the last GPU is through a collective, if this one has gone on by then
    // By GPU, of a collective where they are apart: when it began and was through, after the mean of all.
    std::vector<SubCycle> began = {}, ended = {};
  };
  std::vector<Operation> operations;  // in the program's order, none left out; host waits have none of it
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, hbm_communication_bytes = 0;
  double unit_seconds_compute = 0, unit_seconds_communication = 0;
  std::uint32_t gpus = 0;  // that were simulated
  // By GPU, where each was: when it was through, after the mean of all. Empty: all were together.
  std::vector<SubCycle> apart;
  std::vector<LinkLoad> links;  // in the machine's order
  std::vector<SwitchLoad> switches;
  SubCycle uncertainty = 0;  // of the stretch's length from what was left out of it, one standard deviation
  SubCycle second = 0;       // its length in a second sample; 0: none was taken
};

// CBOR (RFC 8949). Throws InternalError for what is none.
[[nodiscard]] std::string to_bytes(const Regime& regime);
[[nodiscard]] Regime regime_from_bytes(const std::string& bytes);

}  // namespace weft
