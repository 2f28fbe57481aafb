// Kernels that take a time that is given, and nothing else of the GPU: what they do is seen on another one.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

// None: it runs. kNotKnown: it will be said while it does.
std::optional<SubCycle> Gpu::given_time(OpId kernel) const {
  if (const SubCycle lasts = lasts_of(kernel); lasts > 0) return lasts;
  const std::uint32_t kind = work_.kinds != nullptr && !is_resident(kernel) ? (*work_.kinds)[kernel.value] : 0;
  if (kind == 0) return std::nullopt;
  return kind < durations_.size() ? durations_[kind] : TimedKernel::kNotKnown;
}

void Gpu::start_timed(std::uint32_t slot, SubCycle lasts) {
  TimedKernel kernel{.slot = slot, .start = now() + skipped_.at};
  if (lasts != TimedKernel::kNotKnown) kernel.end = kernel.start + lasts;
  timed_.push_back(kernel);
  expect_timed(kernel);
}

// What is left out makes it end sooner: then the event that was pushed before finds nothing at its end.
void Gpu::expect_timed(const TimedKernel& kernel) {
  if (kernel.end == TimedKernel::kNotKnown) return;
  push(std::max(now(), kernel.end - skipped_.at), GpuEvent{.kind = EventKind::timed_ends});
}

void Gpu::end_timed() {
  for (std::size_t i = 0; i < timed_.size();) {
    if (timed_[i].end == TimedKernel::kNotKnown || timed_[i].end > now() + skipped_.at) {
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
  if (durations_.size() <= kind) durations_.resize(kind + 1, TimedKernel::kNotKnown);
  durations_[kind] = lasts;
  for (TimedKernel& kernel : timed_) {
    if (kernel.end != TimedKernel::kNotKnown || (*work_.kinds)[running_[kernel.slot].op.value] != kind) continue;
    kernel.end = std::max(kernel.start + lasts, now() + skipped_.at);
    expect_timed(kernel);
  }
}

std::vector<OpId> Gpu::untimed() const {
  std::vector<OpId> found;
  for (const TimedKernel& kernel : timed_) {
    if (kernel.end == TimedKernel::kNotKnown) found.push_back(running_[kernel.slot].op);
  }
  return found;
}

Time Gpu::timed_left() const {
  Time left = Time::max();
  for (const TimedKernel& kernel : timed_) {
    if (kernel.end != TimedKernel::kNotKnown)
      left = std::min(left, clock_.to_time(std::max<SubCycle>(0, kernel.end - skipped_.at - now())));
  }
  return left;
}

}  // namespace weft
