// Kernels alone: each kernel of a program by itself on an idle GPU, in launch order, with the L2 as the one before left
// it. That is what a slowdown is measured against, and where kernels from traces are calibrated.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu_model/gpu.h"

namespace weft {

struct AloneKernel {
  Time duration;  // 0 for operations that are no kernel
  KernelLedger ledger;
};

struct AlonePass {
  std::vector<AloneKernel> ops;  // by OpId
  // By OpId: the same kernels in the flow of the program, one after another as on the real run, but with collectives
  // that end at once. What communication costs is measured against this.
  std::vector<AloneKernel> undisturbed;
  std::uint32_t calibrated = 0;    // kernels fitted to the time they took alone
  std::uint32_t missed = 0;        // of these, those that stayed more than kCalibrationTolerance off
  std::uint32_t uncalibrated = 0;  // kernels without a known time alone: the demand is used as it is
  std::int64_t memory_transactions = 0;
};

// Fills pass.undisturbed. `work` is that of the GPU whose program was run alone; its collectives are left out.
void run_without_communication(const GpuWork& work, const GpuSpec& gpu, AlonePass& pass);

inline constexpr double kCalibrationTolerance = 0.01;

// Runs all kernels of `program`. Kernels with measured_alone get extra_cycles_per_block, or memory_scale when they
// would take too long even without computing, such that they take that time: one parameter a kernel, from its time
// alone. `progress` sees the share done.
[[nodiscard]] AlonePass run_kernels_alone(Program& program, const GpuSpec& gpu,
                                          const std::function<void(double)>& progress);

}  // namespace weft
