// Rounds of warps: which of them may compute, on the slots of their unit's sub-partitions.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

// Rounds whose loads are all there wait for their slots, or are through at once when they compute nothing.
void Gpu::rounds_complete(std::uint32_t index) {
  Agent& agent = agents_[index];
  const Phase& phase = agent.phase;
  while (agent.complete < phase.rounds && agent.returned >= agent.needed) {
    if (phase.load_count == 0 && phase.compute > 0 && agent.complete > agent.computed) break;  // one at a time
    ++agent.complete;
    for (std::uint32_t s = 0; s < phase.load_count; ++s) {
      agent.needed += phase.loads[s].lines_before(agent.complete + 1, phase.rounds) -
                      phase.loads[s].lines_before(agent.complete, phase.rounds);
    }
    if (phase.compute == 0) ++agent.computed;
  }
  if (phase.compute == 0) return;
  round_ready(index, now());
  start_rounds(agent.unit);
}

// The next round of the agent waits for its slots from `since` on, if it can begin and none waits yet. A barrier lets
// one begin when the one before is through.
void Gpu::round_ready(std::uint32_t index, SubCycle since) {
  Agent& agent = agents_[index];
  if (agent.round_waits || agent.started >= agent.complete) return;
  if ((agent.phase.barrier || agent.phase.latency > 0) && agent.started > agent.computed) return;
  agent.round_waits = true;
  units_[agent.unit].schedulers.add({index, agent.age, since, agent.phase.busiest, agent.partitions});
}

// Books rounds for as long as slots are free, and sees to it that the unit looks again when one gets free.
void Gpu::start_rounds(std::uint32_t unit_index) {
  Unit& unit = units_[unit_index];
  while (const auto next = unit.schedulers.pick(now())) {
    Agent& agent = agents_[next->agent];
    const Stretch stretch = power_ ? power_->stretch() : Stretch();
    const WarpSchedulers::Booked booked =
        unit.schedulers.book(*next, agent.phase, stretch, running_[agent.kernel].communication);
    if (!running_[agent.kernel].communication) {
      blocks_[agent.block].held_by_pipe += static_cast<double>(booked.held_by_communication);
    }
    ++agent.started;
    agent.round_waits = false;
    const SubCycle through = booked.done + (agent.phase.barrier ? barrier_latency_ : 0) + stretch(agent.phase.latency);
    if (power_) power_->note(*this, agent, through - std::max(next->since, agent.pipe_until));
    agent.pipe_time += through - std::max(next->since, agent.pipe_until);
    agent.pipe_until = through;
    push(through, GpuEvent{.kind = EventKind::computed, .agent = next->agent});
    unit.scheduled = std::min(unit.scheduled, through);
    round_ready(next->agent, booked.free);
  }
  if (!unit.schedulers.waiting()) return;
  const SubCycle opens = unit.schedulers.opens();
  if (tick_at_or_after(opens) >= tick_at_or_after(unit.scheduled)) return;
  push(opens, GpuEvent{.kind = EventKind::slot_free, .agent = unit_index});
  unit.scheduled = opens;
}

void Gpu::on_computed(const GpuEvent& event) {
  Agent& agent = agents_[event.agent];
  const std::uint32_t unit = agent.unit;
  const bool work = agent.phase_index == 0;
  ++agent.computed;
  round_ready(event.agent, now());
  run_agent(event.agent);
  on_slot_free(unit);
  if (work && (waves_ || rounds_)) leave_out_work(1);
}

void Gpu::on_slot_free(std::uint32_t unit_index) {
  Unit& unit = units_[unit_index];
  if (unit.scheduled <= now()) unit.scheduled = Unit::kNever;
  if (unit.schedulers.waiting()) start_rounds(unit_index);
}

}  // namespace weft
