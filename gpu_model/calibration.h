// Calibration: a kernel's demand is bent until it takes the time that it took alone. One fitted parameter a kernel, a
// second one where times jump; never from a time beside communication.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu_model/gpu.h"

namespace weft {

// What calibration found for one kernel, and how long the kernel takes alone with it.
struct DemandFit {
  double extra_cycles_per_block = 0;  // pipe cycles on top of those of the operations
  double memory_scale = 1;            // on the bytes
  double flops_scale = 1;             // on the operations
  Time alone;                         // simulated, on an idle GPU; 0 for operations that are no kernel
  bool operator==(const DemandFit&) const = default;
};
void apply(const DemandFit& fit, KernelDemand& demand);

inline constexpr double kCalibrationTolerance = 0.01;

// |simulated - measured| / measured of a kernel with a known time alone.
[[nodiscard]] double calibration_error(const ProgramOp& op, const DemandFit& fit);

// One kernel by itself on an idle GPU.
class Trial {
 public:
  // `gpu` outlives the trial. The first kernel meets an empty L2.
  explicit Trial(const GpuSpec& gpu);
  // How long `op` takes with `demand`, on the L2 as the last kernel kept left it.
  Time run(const ProgramOp& op, const KernelDemand& demand);
  // The kernel of the last run has been: the next one meets the L2 as it left it.
  void keep();
  [[nodiscard]] std::int64_t memory_transactions() const { return memory_transactions_; }

 private:
  const GpuSpec& spec_;
  L2Cache l2_;
  Program program_;
  GpuWork work_;
  std::optional<Gpu> gpu_;
  std::int64_t memory_transactions_ = 0;
};

// Whether kernels ask for the same, at the same addresses.
[[nodiscard]] bool same_demand(const KernelDemand& a, const KernelDemand& b);

// Everything about a kernel that its time alone depends on, but for addresses.
using KernelSignature = std::vector<std::uint64_t>;
[[nodiscard]] KernelSignature kernel_signature(const ProgramOp& op);

// One fitted parameter on one axis: from 0 upwards, pipe cycles of a block, where 1 makes the pipe busy for the time
// alone; from 0 downwards to -1, the share of traffic and operations that is taken away. At -1 a kernel only starts.
struct FitPoint {
  double x = 0;
  // The second parameter, where times jump: on the bytes where cycles were added, cycles where bytes were taken away.
  double traffic = 1;
  double extra = 0;  // of the cycles that x = 1 adds
  bool operator==(const FitPoint&) const = default;
};
// Where earlier searches ended, so that later ones begin there. It costs runs, not exactness.
struct KnownFits {
  std::map<KernelSignature, FitPoint> points;  // the same kernel with the same time
  std::map<KernelSignature, double>
      seconds_besides;           // by name and launch: what such kernels take besides their pipe time
  void merge(KnownFits& other);  // what both know stays
};

// Searches for the fit of `op`, whose measured_alone is known. The last run of `trial` is that of the fit. Begins where
// `earlier` or `found` say and adds to `found`.
[[nodiscard]] DemandFit calibrate(const ProgramOp& op, const GpuSpec& gpu, const KnownFits& earlier, KnownFits& found,
                                  Trial& trial);

}  // namespace weft
