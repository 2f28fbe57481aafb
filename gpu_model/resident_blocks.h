// Thread blocks that stand on a GPU for as long as it has anything else to do: what those of a collective take from the
// kernels beside them, one thing at a time. They do what the aggressors of bench/gpu do on a real GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"

namespace weft {

// spin: only hold their places. copy: load and store. reduce: load two, add, store, as a step of a ring does.
enum class ResidentWork { spin, copy, reduce };

struct ResidentSpec {
  ResidentWork work = ResidentWork::spin;
  std::uint32_t blocks = 16;
  std::uint32_t threads = 512;
  std::uint32_t registers = 96;  // of a thread
  std::uint32_t shared_memory_bytes = 0;
  // All that they touch, sources and target: each block goes round and round in its share. Below the L2's size it stays
  // there. In HBM, behind all else.
  std::int64_t buffer_bytes = std::int64_t{512} << 20;
  std::int64_t chunk_bytes = 16 << 10;           // a block stores so much, then looks at the clock
  std::optional<Bandwidth> rate = std::nullopt;  // at which they store, all together, at most; none: as fast as it goes
};

// Of the buffer, for each line that is stored: itself and those that are loaded. 0: no buffer.
[[nodiscard]] std::uint32_t resident_streams(ResidentWork work);
// Chunks in a block's share of the buffer.
[[nodiscard]] std::int64_t resident_chunks(const ResidentSpec& spec);

// `address` of the buffer. Spinning blocks wait for `stop_flag`; the GPU stops all others between two chunks. Throws
// InputError when a block has no chunk.
[[nodiscard]] ScriptedKernel resident_kernel(const ResidentSpec& spec, const GpuSpec& gpu, std::int64_t address,
                                             std::uint32_t stop_flag);

// What resident blocks moved until they were stopped.
struct ResidentTraffic {
  std::int64_t loaded_bytes = 0;
  std::int64_t stored_bytes = 0;
  Time stopped;
};

}  // namespace weft
