#include "cli/sampled/kernel_followers.h"

#include <algorithm>

namespace weft {

void follow_first(Machine& machine, Time now) {
  const std::vector<OpTimes>& first = machine.gpu(0).times();
  const auto can_end = [&](const TimedKernel& kernel) {
    return kernel.end == TimedKernel::kNotKnown && first[kernel.op.value].end >= 0;
  };
  for (std::uint32_t g = 1; g < machine.gpus(); ++g) {
    Gpu& gpu = machine.gpu(g);
    if (std::ranges::none_of(gpu.timed(), can_end)) continue;
    gpu.come_to(now);
    for (const TimedKernel& kernel : gpu.timed()) {
      const OpTimes& leader = first[kernel.op.value];
      if (can_end(kernel)) gpu.set_end(kernel.op, kernel.start + leader.end - leader.start);
    }
    machine.changed(g);
  }
}

}  // namespace weft
