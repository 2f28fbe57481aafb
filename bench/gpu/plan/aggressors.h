// What stands for a collective beside a victim: persistent blocks like NCCL's, or the copy engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::gpu_probe {

enum class AggressorKind {
  spin,        // holds its place and polls a flag in the L2
  copy,        // reads and writes HBM
  l2_copy,     // the same within what the L2 holds
  reduce,      // reads two tensors, adds, writes one, as a step of a ring does
  host_write,  // reads HBM, writes memory of the host: as a block that writes to another GPU
  host_read,   // reads memory of the host, writes HBM: as a block that reads from another GPU
  copy_engine  // host memory to device memory and back at once, no blocks
};
[[nodiscard]] const char* to_string(AggressorKind kind);

struct Aggressor {
  std::string name;
  AggressorKind kind = AggressorKind::spin;
  int blocks = 0;
  int threads = 512;
  int shared_memory_bytes = 0;      // dynamic
  std::int64_t buffer_bytes = 0;    // all tensors and all blocks together
  int chunk_bytes = 0;              // that a block writes between two waits
  std::optional<double> rate_GBps;  // bytes that all blocks write a second; absent: as fast as they can
  bool fences = false;              // for the whole system after each chunk, and a flag in the host's memory
  bool own_domain = false;          // launched in the remote memory synchronization domain
};

// Dynamic shared memory of NCCL's blocks: none (its oldest kernels), V100 (2.10), A100 (2.17).
inline constexpr int kNoSharedMemory = 0;
inline constexpr int kSharedMemoryV100 = 42024;
inline constexpr int kSharedMemoryA100 = 87568;
inline constexpr int kRegistersAsked = 96;

inline constexpr int kSmallChunkBytes = 16 << 10;
inline constexpr int kLargeChunkBytes = 64 << 10;

// Named after kind, blocks, rate and, where it is not the usual one of A100, shared memory: "copy_16_400GBps",
// "reduce_8_max", "spin_16_42KB".
[[nodiscard]] Aggressor make_aggressor(AggressorKind kind, int blocks, std::optional<double> rate_GBps,
                                       int shared_memory_bytes = kSharedMemoryA100);
// The same with fences ("..._fence"), and with a domain of its own ("..._domain").
[[nodiscard]] Aggressor with_fences(Aggressor aggressor);
[[nodiscard]] Aggressor in_own_domain(Aggressor aggressor);
[[nodiscard]] bool uses_host_memory(AggressorKind kind);

// Beside every victim.
[[nodiscard]] const std::vector<Aggressor>& core_aggressors();
// Beside a handful of victims: blocks by rate, less what the core has already.
[[nodiscard]] const std::vector<Aggressor>& surface_aggressors();

// Nanoseconds from one chunk's start to the next of the same block; absent where the rate is not limited.
[[nodiscard]] std::optional<double> chunk_interval_ns(const Aggressor& aggressor);
// Of one tensor of one block: whole chunks.
[[nodiscard]] std::int64_t slice_bytes(const Aggressor& aggressor);
[[nodiscard]] int tensors(AggressorKind kind);

}  // namespace weft::gpu_probe
