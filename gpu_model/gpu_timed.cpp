// Kernels and collectives that take a time that is given, and nothing else of the GPU.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

// None: it runs. kNotKnown: it will be said while it does.
std::optional<SubCycle> Gpu::given_time(OpId op) const {
  if (is_resident(op)) return std::nullopt;
  const ProgramOp& described = frontend_.program().ops[op.value];
  if (described.kind == ProgramOpKind::kernel) {
    if (const SubCycle lasts = lasts_of(op); lasts > 0) return lasts;
    if (work_.kernels_timed && !described.fused) return TimedKernel::kNotKnown;
  } else if (work_.timed_collectives != nullptr && (*work_.timed_collectives)[op.value]) {
    return TimedKernel::kNotKnown;
  }
  return std::nullopt;
}

void Gpu::start_timed(std::uint32_t slot, SubCycle lasts) {
  TimedKernel kernel{.op = running_[slot].op, .slot = slot, .start = now() + skipped_.at};
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

// One that is over ends it at once. What was expected before finds nothing at its end.
void Gpu::set_end(OpId op, SubCycle end) {
  for (TimedKernel& kernel : timed_) {
    if (kernel.op != op) continue;
    kernel.end = std::max(end, now() + skipped_.at);
    expect_timed(kernel);
  }
}

void Gpu::communicating(std::vector<OpId>& found) const {
  for (const std::uint32_t slot : active_) {
    const RunningKernel& kernel = running_[slot];
    if (!kernel.communication || !kernel.on_units) continue;
    if (kernel.timed || kernel.begun() > kernel.blocks_done) found.push_back(kernel.op);
  }
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
