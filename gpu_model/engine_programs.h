// Collectives that DMA engines move: what their queues of commands load, store and signal.
//
// Copy engine (as ConCCL and NCCL's copy-engine collectives): every rank writes each other rank its part directly. An
// all-reduce is that twice, with kernels on compute units between that add up what has come: copy engines cannot add.
//
// Near memory (T3: Pati et al., ASPLOS 2024): a ring whose sums are made by the memory that the partial results are
// written to. Each transfer starts when its data has been written, told by a count of arrived lines. What T3 gains by
// fusing the first step with the kernel that produces the data is not modelled: the collective starts after it.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "network/collective_spec.h"

namespace weft {

// One rank's place in a collective in place, the same addresses on all GPUs.
struct EnginePlace {
  const GpuSpec* gpu = nullptr;  // has engines
  const CollectiveSpec* library = nullptr;
  GpuGroup group;
  std::uint32_t rank = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;  // of the whole buffer
  std::int64_t buffer_end = 0;
  std::uint32_t first_flag = 0;
};

[[nodiscard]] std::uint32_t near_memory_flags(const EnginePlace& place);
[[nodiscard]] ScriptedKernel near_memory_all_reduce(const EnginePlace& place);

[[nodiscard]] std::uint32_t copy_engine_flags(const EnginePlace& place);
// Throws InputError where the memory does not hold what the other ranks send.
[[nodiscard]] ScriptedKernel copy_engine_all_reduce(const EnginePlace& place);
[[nodiscard]] ScriptedKernel copy_engine_all_gather(const EnginePlace& place);
// The traffic of one between two buffers, at the addresses of one.
[[nodiscard]] ScriptedKernel copy_engine_all_to_all(const EnginePlace& place);
// From the first rank of the group.
[[nodiscard]] ScriptedKernel copy_engine_broadcast(const EnginePlace& place);

}  // namespace weft
