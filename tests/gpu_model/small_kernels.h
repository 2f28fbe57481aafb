// What runs on the small GPU where only units and times matter.
#pragma once

#include <memory>
#include <vector>

#include "tests/gpu_model/small_gpu.h"

namespace weft {

// Of an operation, in cycles.
inline double start_of(const Gpu& gpu, std::size_t op) {
  return static_cast<double>(gpu.times()[op].start) / static_cast<double>(kCycle);
}
inline double end_of(const Gpu& gpu, std::size_t op) {
  return static_cast<double>(gpu.times()[op].end) / static_cast<double>(kCycle);
}

// Blocks as large as a unit that only compute for `computed` cycles.
inline KernelDemand whole_units(std::uint32_t blocks, double computed, std::uint32_t cluster = 1) {
  KernelDemand demand = grid_of(blocks);
  demand.shape.shared_memory_bytes = 64 << 10;
  demand.shape.cluster_blocks = cluster;
  demand.extra_cycles_per_block = computed;
  return demand;
}

inline ProgramOp collective_op(std::uint32_t stream) {
  ProgramOp op;
  op.kind = ProgramOpKind::collective;
  op.name = "all_reduce";
  op.stream = StreamId{stream};
  return op;
}

inline std::shared_ptr<const BlockPrograms> one_block(const WarpScript& script) {
  return std::make_shared<WrittenPrograms>(std::vector<std::vector<WarpScript>>{{script}});
}

// Blocks that wait for flag 0 to count to `value`; of 2048 threads, each fills a unit.
inline ScriptedKernel waiting_block(std::uint32_t value, std::uint32_t blocks = 1, std::uint32_t threads = 2048) {
  ScriptedKernel kernel;
  kernel.threads_per_block = threads;
  WarpScript script;
  script.phases.emplace_back().wait({.flag = 0, .value = value});
  script.lines_in_flight = 16;
  kernel.programs = std::make_shared<WrittenPrograms>(std::vector<std::vector<WarpScript>>(blocks, {script}));
  return kernel;
}

// From the host.
inline ScriptedKernel host_copy(std::uint32_t lines, std::uint32_t rounds = 1, std::uint32_t stages = 1) {
  ScriptedKernel copy;
  copy.executor = Executor::host_copy_engine;
  WarpScript script;
  Phase& phase = script.phases.emplace_back();
  phase.store({.first = 4096, .lines = lines});
  phase.rounds = rounds;
  phase.stages = stages;
  script.lines_in_flight = 256;
  copy.programs = one_block(script);
  return copy;
}

}  // namespace weft
