#include "gpu_model/kernels_in_a_row.h"

namespace weft {

Time time_of_last(const GpuSpec& spec, const std::vector<KernelDemand>& kernels) {
  Program program;
  program.priorities = {0};
  for (const KernelDemand& demand : kernels) program.ops.edit().emplace_back().kernel = demand;
  GpuWork work;
  work.program = &program;
  work.scripts.assign(kernels.size(), nullptr);
  Gpu gpu(GpuId{0}, spec, work, LinkPorts());
  run_alone(gpu);
  const OpTimes& times = gpu.times().back();
  return gpu.clock().to_time(times.end - times.start);
}

}  // namespace weft
