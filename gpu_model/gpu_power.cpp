#include "gpu_model/gpu_power.h"

#include <algorithm>
#include <bit>

#include "gpu_model/gpu.h"

namespace weft {

GpuPower::GpuPower(const PowerSpec& spec, const Gpu& gpu)
    : governor_(spec, gpu.spec_),
      window_(spec.window),
      full_clock_{gpu.request_latency_,
                  gpu.response_latency_,
                  gpu.poll_wait_,
                  gpu.l1_latency_,
                  gpu.l1_line_time_,
                  gpu.barrier_latency_,
                  gpu.units_.front().load_request_time,
                  gpu.units_.front().port_line_time,
                  gpu.units_.front().port_store_time,
                  gpu.gpc_ports_.line_time},
      window_end_(tick_at_or_after(gpu.clock_.to_subcycles(spec.window))) {}

bool GpuPower::is_unit(const Gpu& gpu, std::uint32_t unit) {
  return unit < gpu.spec_.compute_units || (gpu.private_units_ > 0 && unit >= gpu.private_units_);
}

PoweredWork GpuPower::work(const Gpu& gpu) const {
  const GpuStatistics& counted = gpu.statistics_;
  PoweredWork done;
  done.unit_s = counted.unit_seconds_compute + counted.unit_seconds_communication;
  for (std::size_t s = 0; s < kSlotCount; ++s) done.slot_s[s] = to_seconds(gpu.clock_.to_time(slot_time_[s]));
  const HbmBytes hbm = gpu.hbm_bytes();
  done.l2_bytes = counted.memory_transactions * kLineBytes;
  done.hbm_bytes = hbm.read + hbm.written;
  done.link_bytes = counted.delivered_bytes;
  return done;
}

void GpuPower::next_window(Gpu& gpu, std::int64_t tick) {
  for (std::uint32_t u = 0; u < gpu.units_.size(); ++u) {
    if (is_unit(gpu, u)) gpu.account_unit(u);
  }
  const std::int64_t opens = std::max(open_ + 1, gpu.clock_.to_time(cycles(tick)) / window_);
  governor_.end_window(work(gpu), opens - open_ - 1);
  open_ = opens;
  window_end_ = std::max(tick + 1, tick_at_or_after(gpu.clock_.to_subcycles(window_ * (opens + 1))));
  set_clock(gpu, Stretch(governor_.clock_share()));
}

void GpuPower::set_clock(Gpu& gpu, Stretch stretch) {
  stretch_ = stretch;
  gpu.request_latency_ = stretch(full_clock_.request_latency);
  gpu.response_latency_ = stretch(full_clock_.response_latency);
  gpu.poll_wait_ = stretch(full_clock_.poll_wait);
  gpu.l1_latency_ = stretch(full_clock_.l1_latency);
  gpu.l1_line_time_ = stretch(full_clock_.l1_line);
  gpu.barrier_latency_ = stretch(full_clock_.barrier);
  for (std::uint32_t u = 0; u < gpu.units_.size(); ++u) {
    Unit& unit = gpu.units_[u];
    if (!unit.at_link_port) {
      unit.to_links = gpu.request_latency_;
      unit.from_links = gpu.response_latency_;
    }
    if (!is_unit(gpu, u)) continue;  // rates of engines stay
    unit.load_request_time = stretch(full_clock_.unit_request);
    unit.port_line_time = stretch(full_clock_.unit_line);
    unit.port_store_time = stretch(full_clock_.unit_store);
  }
  gpu.gpc_ports_.line_time = stretch(full_clock_.gpc_line);
  gpu.l2_.set_stretch(stretch);
}

void GpuPower::note(Gpu& gpu, const Agent& agent, SubCycle in_pipes) {
  gpu.blocks_[agent.block].slow_clock += stretch_.lost(in_pipes);
  if (!is_unit(gpu, agent.unit)) return;
  const Phase& phase = agent.phase;
  const SubCycle partitions = std::popcount(agent.partitions);
  const auto busiest = static_cast<std::size_t>(phase.busiest);
  for (std::size_t s = 0; s < kSlotCount; ++s) {
    slot_time_[s] += partitions * (s == busiest ? phase.compute : phase.beside[s]);
  }
}

PowerUse GpuPower::use(const Gpu& gpu, Time run_end) const {
  const auto full = static_cast<double>(gpu.spec_.clock.count());
  const double end = to_seconds(run_end);
  PowerUse use;
  use.window_s = to_seconds(window_);
  const double open = std::max(0.0, end - use.window_s * static_cast<double>(open_));
  use.joules = governor_.joules(work(gpu), open);
  use.lowest_clock_Hz = full * governor_.clock_share();
  double cycles = use.lowest_clock_Hz * open;
  for (const PowerWindow& past : governor_.windows()) {
    use.window_W.push_back(past.mean_W);
    use.window_Hz.push_back(full * past.clock_share);
    use.highest_W = std::max(use.highest_W, past.mean_W);
    use.lowest_clock_Hz = std::min(use.lowest_clock_Hz, use.window_Hz.back());
    cycles += use.window_Hz.back() * use.window_s;
  }
  if (end > 0) {
    use.mean_W = use.joules / end;
    use.mean_clock_Hz = cycles / end;
  }
  return use;
}

std::optional<PowerUse> Gpu::power_use(Time run_end) const {
  if (!power_) return std::nullopt;
  return power_->use(*this, run_end);
}

}  // namespace weft
