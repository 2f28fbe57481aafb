// Calibration: a kernel's demand is bent until it takes the time that it took alone. One fitted parameter a kernel, a
// second one where times jump; never from a time beside communication.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gpu_model/kernel_signature.h"
#include "gpu_model/trial.h"

namespace weft {

// What calibration found for one kernel, and how long the kernel takes alone with it.
struct DemandFit {
  double extra_cycles_per_block = 0;  // on top of those of the operations: in a pipe,
  bool extra_waits = false;           // or waiting, where the operations keep no pipe busy for half of the time
  double memory_scale = 1;            // on the bytes
  double flops_scale = 1;             // on the operations
  Time alone;                         // simulated, on an idle GPU; 0 for operations that are no kernel
  bool operator==(const DemandFit&) const = default;
};
void apply(const DemandFit& fit, KernelDemand& demand);

inline constexpr double kCalibrationTolerance = 0.01;

// |simulated - measured| / measured of a kernel with a known time alone.
[[nodiscard]] double calibration_error(const ProgramOp& op, const DemandFit& fit);

// A fit that served some launches of a kernel.
struct KnownFit {
  DemandFit fit;
  std::uint32_t launches = 1;
};
// Where earlier searches ended. A later launch of the same kernel that takes its own time with one of these demands
// gets that demand, so that what repeats in a trace repeats in its demands, and only noise is left out.
struct KnownFits {
  std::map<KernelSignature, std::vector<KnownFit>> fits;  // of the same kernel, with other times or on another L2
  std::map<KernelSignature, double>
      seconds_besides;  // by name and launch: what such kernels take besides their pipe time
  void merge(KnownFits& other);
};

// Searches for the fit of `op`, whose measured_alone is known. The last run of `trial` is that of the fit. Takes a fit
// of `earlier` or `found` if `op` takes its measured time with it, else begins where they say; adds to `found`.
[[nodiscard]] DemandFit calibrate(const ProgramOp& op, const GpuSpec& gpu, const KnownFits& earlier, KnownFits& found,
                                  Trial& trial);

}  // namespace weft
