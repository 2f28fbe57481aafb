// How the communication library drives a collective: NCCL's channels, buffers and protocol steps. Plain data; the
// defaults of a GPU generation stand in configs/systems with their sources.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace weft {

enum class AllReduceAlgorithm { automatic, ring, in_switch };

struct RingSpec {
  std::uint32_t channels = 0;           // thread blocks of the collective
  std::uint32_t threads = 512;          // of a block that move data
  std::int64_t buffer_bytes = 4 << 20;  // NCCL_BUFFSIZE, of a channel
  std::uint32_t buffer_steps = 8;       // NCCL_STEPS
  std::uint32_t chunk_steps = 4;        // ALLREDUCE_CHUNKSTEPS
  std::uint32_t slice_steps = 2;        // ALLREDUCE_SLICESTEPS
  bool receiver_reads = false;          // A100; else the sender writes
};

struct InSwitchSpec {
  std::uint32_t channels = 16;
  bool registered = false;         // user buffers known to the switch: no staging copies
  std::uint32_t reduce_warps = 5;  // of a block
  std::uint32_t copy_warps = 6;    // each for staging in and out
};

struct CollectiveSpec {
  RingSpec ring;
  InSwitchSpec in_switch;
  std::uint32_t registers_per_thread = 96;
  std::uint32_t shared_memory_bytes = 0;  // of a block
  std::uint32_t bytes_in_flight_per_warp = 2048;
  Time base_latency;  // start of a collective kernel to its first load: argument and channel set-up
};

}  // namespace weft
