// Kernels alone: each kernel of a program by itself on an idle GPU, in launch order, with the L2 as the ones before
// left it. That is what a slowdown is measured against, and where kernels from traces are calibrated.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu_model/calibration.h"
#include "gpu_model/gpu.h"

namespace weft {

// Runs all kernels of `programs` alone, on up to `threads` threads; the result is the same for any number. Those with
// measured_alone are calibrated to it (calibration.h). Returns a fit for each operation of each; programs are not
// changed. The fits of the first iterations do not depend on how many follow. `progress` sees the share done and may be
// empty; `transactions` grows by the memory transactions. `skip_waves`: what repeats in a long kernel is left out, as
// in sampled runs.
//
// Kernels go in chunks of kAloneChunk, each of which starts behind kAloneWarmUp kernels before it, and those on an L2
// that was told of what fills it before them (l2_of_addresses.h). Chunks go in rounds, each of as many as all before it, and know the fits of
// the rounds before: so that kernels that come again share theirs, whichever chunk they are in.
[[nodiscard]] std::vector<std::vector<DemandFit>> run_kernels_alone(std::span<const Program> programs,
                                                                    const GpuSpec& gpu, std::uint32_t threads,
                                                                    const std::function<void(double)>& progress,
                                                                    std::int64_t& transactions,
                                                                    bool skip_waves = false);
// The programs whose kernels need a pass of their own: the first for all, or, where any differ, all.
[[nodiscard]] std::span<const Program> distinct_kernels(std::span<const Program> programs);
inline constexpr std::size_t kAloneChunk = 48;
inline constexpr std::size_t kAloneWarmUp = 6;

// How well kernels were fitted to their times alone.
struct CalibrationSummary {
  std::uint32_t calibrated = 0;    // kernels with a known time alone
  std::uint32_t missed = 0;        // of these, those that stayed more than kCalibrationTolerance off
  std::uint32_t missed_twice = 0;  // and more than twice that
  std::uint32_t overlapped = 0;    // and those of which that is a time beside communication
  std::uint32_t uncalibrated = 0;  // kernels without: the demand is used as it is
  std::string worst;               // the kernel that is most off; empty: none was fitted
  double worst_error = 0;
};
// `fits` as run_kernels_alone returns them; there may be more of them than operations.
[[nodiscard]] CalibrationSummary summarise(std::span<const Program> programs,
                                           const std::vector<std::vector<DemandFit>>& fits);

// The program with collectives that end at once: what communication costs is measured against this.
struct UndisturbedRun {
  std::vector<Time> durations;     // by OpId, 0 for operations that are no kernel
  std::vector<double> slow_clock;  // by OpId, as in the ledger; empty: none
  Time end;
};
struct AlonePass {
  std::vector<DemandFit> fits;  // by OpId
  UndisturbedRun undisturbed;
};
// One for all GPUs, or one for each where their kernels differ.
struct AlonePasses {
  std::vector<AlonePass> passes;
  [[nodiscard]] const AlonePass& of(std::size_t gpu) const { return passes[passes.size() == 1 ? 0 : gpu]; }
};

// `work` is that of the GPU whose program was run alone.
[[nodiscard]] UndisturbedRun run_without_communication(const GpuWork& work, const GpuSpec& gpu,
                                                       std::int64_t& transactions);

}  // namespace weft
