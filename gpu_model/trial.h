// One kernel by itself on an idle GPU, again and again until its demand is found.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu_model/gpu.h"

namespace weft {

class Trial {
 public:
  // `gpu` outlives the trial. The first kernel meets `l2`. `skip_waves`: as GpuWork's.
  Trial(const GpuSpec& gpu, L2Cache l2, bool skip_waves = false);
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

}  // namespace weft
