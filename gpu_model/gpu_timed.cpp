// Kernels that take a time that is given, and nothing else of the GPU: what they do is seen on another one.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

void Gpu::start_timed(std::uint32_t slot, std::uint32_t kind) {
  running_[slot].timed = true;
  TimedKernel kernel{.slot = slot, .kind = kind, .start = now() + skipped_.at};
  if (kind < durations_.size() && durations_[kind] >= 0) kernel.end = kernel.start + durations_[kind];
  timed_.push_back(kernel);
  expect_timed(kernel);
}

// What is left out makes it end sooner: then the event that was pushed before finds nothing at its end.
void Gpu::expect_timed(const TimedKernel& kernel) {
  if (kernel.end < 0) return;
  push(std::max(now(), kernel.end - skipped_.at), GpuEvent{.kind = EventKind::timed_ends});
}

void Gpu::end_timed() {
  for (std::size_t i = 0; i < timed_.size();) {
    if (timed_[i].end < 0 || timed_[i].end > now() + skipped_.at) {
      ++i;
      continue;
    }
    const std::uint32_t slot = timed_[i].slot;
    timed_.erase(timed_.begin() + static_cast<std::ptrdiff_t>(i));
    end_op(slot);
  }
}

void Gpu::come_to(Time now) { run_events(tick_at_or_after(clock_.to_subcycles(now))); }

void Gpu::set_duration(std::uint32_t kind, SubCycle lasts) {
  if (durations_.size() <= kind) durations_.resize(kind + 1, -1);
  durations_[kind] = lasts;
  for (TimedKernel& kernel : timed_) {
    if (kernel.kind != kind || kernel.end >= 0) continue;
    kernel.end = std::max(kernel.start + lasts, now() + skipped_.at);
    expect_timed(kernel);
  }
}

std::vector<OpId> Gpu::untimed() const {
  std::vector<OpId> found;
  for (const TimedKernel& kernel : timed_) {
    if (kernel.end < 0) found.push_back(running_[kernel.slot].op);
  }
  return found;
}

Time Gpu::timed_left() const {
  Time left = Time::max();
  for (const TimedKernel& kernel : timed_) {
    if (kernel.end >= 0) left = std::min(left, clock_.to_time(std::max<SubCycle>(0, kernel.end - skipped_.at - now())));
  }
  return left;
}

}  // namespace weft
