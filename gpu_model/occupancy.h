// How many blocks of which kernels fit on a compute unit: threads, registers, shared memory, block slots. Register and
// shared memory granularity as in NVIDIA's occupancy calculator for compute capability 7.0 and later.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu_model/gpu_spec.h"

namespace weft {

// What one block takes of a unit.
struct BlockNeeds {
  std::uint32_t threads = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared_memory = 0;
  std::uint32_t carveout = 0;  // shared memory that a unit needs, for as many such blocks as it can take; bytes
};

[[nodiscard]] BlockNeeds block_needs(const ComputeUnitSpec& unit, std::uint32_t threads,
                                     std::uint32_t registers_per_thread, std::uint32_t shared_memory_bytes);

// What is free on one unit. Its carveout is that of the kernel whose block came first, and stays until it is empty:
// what other kernels' blocks can have of it is what is left, and who wants a larger one for as many blocks as fit on an
// empty unit waits. So it is on H100 and H200 (docs/validation.md, Blocks beside kernels).
class UnitSlots {
 public:
  explicit UnitSlots(const ComputeUnitSpec& unit);
  [[nodiscard]] bool fits(const BlockNeeds& needs) const;
  // Blocks that fit, one beside the other.
  [[nodiscard]] std::uint32_t room(const BlockNeeds& needs) const;
  void take(const BlockNeeds& needs);
  void release(const BlockNeeds& needs);

 private:
  std::uint32_t threads_;
  std::uint32_t registers_;
  std::uint32_t shared_memory_;
  std::uint32_t blocks_;
  std::uint32_t most_shared_memory_, most_blocks_;
  std::uint32_t carveout_ = 0;  // of the blocks that stand on it
};

// The most that a block can have so that one fits on an empty unit: bytes of shared memory; registers a thread of so
// many (0: not even one each).
[[nodiscard]] std::uint32_t most_shared_memory(const ComputeUnitSpec& unit);
[[nodiscard]] std::uint32_t most_registers_per_thread(const ComputeUnitSpec& unit, std::uint32_t threads);

// Blocks of one kind that fit on an empty unit; 0 when not even one does.
[[nodiscard]] std::uint32_t blocks_per_unit(const ComputeUnitSpec& unit, const BlockNeeds& needs);
// What one block of `whose` takes. InputError when it does not fit on an empty unit: it would wait for ever.
BlockNeeds needs_that_fit(const GpuSpec& gpu, std::string_view whose, std::uint32_t threads,
                          std::uint32_t registers_per_thread, std::uint32_t shared_memory_bytes);

// The first unit of GPC `gpc`; of the number of GPCs, behind the last. GPCs are as even as pairs of units (TPCs) can
// be where the GPU does not say how large they are: 132 units in 8 of them make 16, 16, 16, 18, 16, 16, 16, 18.
[[nodiscard]] std::uint32_t first_unit_of_gpc(const GpuSpec& gpu, std::uint32_t gpc);
// Units in the order in which blocks of one kernel come to them, where they have room for as many. On an H200 that was
// measured (docs/validation.md): pairs without a GPC first, the one unit of each and then the other, then one unit of
// each GPC in turn, of pairs that are free. By number where the GPU does not say how large its GPCs are.
[[nodiscard]] std::vector<std::uint32_t> units_in_order(const GpuSpec& gpu);
// Blocks of one kind in the largest cluster: they fit on one GPC, and the GPU has clusters of so many.
[[nodiscard]] std::uint32_t most_cluster_blocks(const GpuSpec& gpu, const BlockNeeds& needs);
// Of a launch that was recorded on another GPU: its cluster, or the largest part of it that this GPU has.
[[nodiscard]] std::uint32_t cluster_that_fits(const GpuSpec& gpu, const LaunchShape& shape);

}  // namespace weft
