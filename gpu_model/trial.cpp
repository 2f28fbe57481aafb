#include "gpu_model/trial.h"

#include <utility>

namespace weft {

Trial::Trial(const GpuSpec& gpu, L2Cache l2, bool skip_waves) : spec_(gpu), l2_(std::move(l2)) {
  program_.priorities = {0};
  program_.ops.edit().resize(1);
  work_.program = &program_;
  work_.scripts = {nullptr};
  work_.skip_waves = skip_waves;
}

Time Trial::run(const ProgramOp& op, const KernelDemand& demand) {
  ProgramOp& only = program_.ops.edit().front();
  only.name = op.name;
  only.kernel = demand;
  gpu_.emplace(GpuId{0}, spec_, work_, LinkPorts());
  gpu_->set_l2(l2_);
  run_alone(*gpu_);
  memory_transactions_ += gpu_->statistics().memory_transactions;
  const OpTimes& times = gpu_->times().front();
  return gpu_->clock().to_time(times.end) - gpu_->clock().to_time(times.start);
}

void Trial::keep() {
  l2_ = gpu_->l2();
  l2_.rest();
}

}  // namespace weft
