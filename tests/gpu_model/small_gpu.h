// A GPU whose numbers are easy to compute with: a cycle is a nanosecond, an HBM channel moves a sector a cycle.
#pragma once

#include "gpu_model/gpu.h"

namespace weft {

inline GpuSpec small_gpu() {
  GpuSpec gpu;
  gpu.name = "small";
  gpu.compute_units = 4;
  gpu.clock = megahertz(1000);
  ComputeUnitSpec& unit = gpu.compute_unit;
  unit.shared_memory_bytes = 64 << 10;
  unit.flops_per_cycle = {512, 256, 64, 32, 16};
  unit.max_outstanding_lines = 256;
  unit.l1_bytes = 64 << 10;  // all of it shared memory: no L1
  gpu.l2 = {.bytes = 64 << 10, .slices = 4, .ways = 4, .bytes_per_cycle = 64, .hit_latency_cycles = 100};
  HbmSpec& hbm = gpu.hbm;
  hbm.bytes = std::int64_t{1} << 30;
  hbm.channels = 4;
  hbm.bandwidth = gigabytes_per_second(4 * 32);
  hbm.latency = nanoseconds(200);
  hbm.row_cycle = nanoseconds(50);
  hbm.row_miss = nanoseconds(30);
  hbm.turnaround = nanoseconds(10);
  hbm.refresh_interval = nanoseconds(3900);  // and no refresh
  hbm.write_batch = 8;
  gpu.launch = {.device_latency = nanoseconds(500),
                .host_issue = nanoseconds(1000),
                .host_to_device = nanoseconds(2000),
                .host_collective_issue = nanoseconds(3000),
                .graph_node = nanoseconds(300)};
  gpu.host_link = gigabytes_per_second(32);
  return gpu;
}

// Its unloaded latencies, in cycles: a block is started; a request is on its way; a slice passes 128 B; HBM; the way
// back.
inline constexpr double kBlockStart = 1;
inline constexpr double kRequest = 40;
inline constexpr double kSlice = 2;
inline constexpr double kHbm = 200;
inline constexpr double kResponse = 58;
inline constexpr double kHit = kRequest + kSlice + kResponse;

// One program on one GPU without links, run until it sleeps.
class AloneGpu {
 public:
  AloneGpu(const GpuSpec& spec, Program program) : program_(std::move(program)) {
    work_.program = &program_;
    work_.scripts.assign(program_.ops.size(), nullptr);
    spec_ = spec;
  }
  // The part of a collective, for an operation of that kind.
  void script(std::size_t op, const ScriptedKernel* kernel, std::uint32_t flags) {
    work_.scripts[op] = kernel;
    work_.flags = flags;
  }
  void skip_waves() { work_.skip_waves = true; }
  Gpu& run() {
    gpu_.emplace(GpuId{0}, spec_, work_, LinkPorts());
    for (Time next = gpu_->next_activity(); next != Time::max(); next = gpu_->next_activity()) {
      gpu_->advance(next + microseconds(10));
    }
    return *gpu_;
  }
  // Of an operation, in cycles.
  [[nodiscard]] double duration(std::size_t op) const {
    const OpTimes& times = gpu_->times()[op];
    return static_cast<double>(times.end - times.start) / static_cast<double>(kCycle);
  }

 private:
  GpuSpec spec_;
  Program program_;
  GpuWork work_;
  std::optional<Gpu> gpu_;
};

inline Program program_of(std::vector<ProgramOp> ops, std::size_t streams = 1) {
  Program program;
  program.priorities.assign(streams, 0);
  program.ops = std::move(ops);
  return program;
}

inline ProgramOp kernel_op(const KernelDemand& demand, std::uint32_t stream = 0) {
  ProgramOp op;
  op.name = "kernel";
  op.stream = StreamId{stream};
  op.kernel = demand;
  return op;
}

// A grid of blocks of one warp group: `threads` threads each.
inline KernelDemand grid_of(std::uint32_t blocks, std::uint32_t threads = 256) {
  KernelDemand demand;
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {threads, 1, 1};
  return demand;
}

}  // namespace weft
