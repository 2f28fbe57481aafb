// Blocks that stay beside all operations.
#include "gpu_model/gpu.h"

namespace weft {

void Gpu::start_residents() {
  const auto first = static_cast<std::uint32_t>(work_.program->ops.size());
  for (std::uint32_t r = 0; r < work_.residents.size(); ++r) {
    push_control(0, GpuEvent{.kind = EventKind::op_starts, .agent = first + r});
  }
}

// At the end of a phase, which is counted here.
bool Gpu::resident_stays(const Agent& agent) {
  ResidentTraffic& traffic = residents_[running_[agent.kernel].op.value - work_.program->ops.size()];
  for (std::uint32_t s = 0; s < agent.phase.load_count; ++s) {
    traffic.loaded_bytes += std::int64_t{agent.phase.loads[s].lines} * kLineBytes;
  }
  for (std::uint32_t s = 0; s < agent.phase.store_count; ++s) {
    traffic.stored_bytes += std::int64_t{agent.phase.stores[s].lines} * kLineBytes;
  }
  return !frontend_.done();
}

void Gpu::stop_residents_if_done() {
  if (residents_.empty() || !frontend_.done()) return;
  for (ResidentTraffic& traffic : residents_) traffic.stopped = clock_.to_time(now());
  count_flag(work_.stop_flag);
}

}  // namespace weft
