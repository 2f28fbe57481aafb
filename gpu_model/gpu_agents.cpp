// Warps: they go through their phases, wait for flags and post them.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "gpu_model/gpu_values.h"
#include "sim/error.h"

namespace weft {

// Puts the cursors of a new phase to its start.
void Gpu::enter_phase(std::uint32_t index) {
  Agent& agent = agents_[index];
  const Phase& phase = agent.phase;
  agent.entered = now() + skipped_.at;
  agent.rounds = phase.rounds;
  agent.stages = phase.stages;
  agent.load_count = phase.load_count;
  agent.store_count = phase.store_count;
  agent.waits = phase.wait_count > 0 || phase.delay > 0 || phase.post_delay_phases > 0;
  agent.returned = agent.complete = agent.started = agent.computed = agent.needed = 0;
  for (std::uint32_t s = 0; s < phase.load_count; ++s) agent.needed += phase.loads[s].lines_before(1, phase.rounds);
  agent.load_round = agent.store_round = 0;
  agent.load_stream = agent.store_stream = 0;
  next_load_stream(agent);
  next_store_stream(agent);
  if (work_.values != nullptr) work_.values->begin(index, phase);
}

// False while a flag that the phase waits for has not counted far enough; the flag then resumes the agent.
bool Gpu::flags_counted(std::uint32_t index) {
  Phase& phase = agents_[index].phase;
  while (phase.wait_count > 0) {
    const FlagWait wait = phase.waits[phase.wait_count - 1U];
    if (!has_counted(wait.flag, wait.value, index)) return false;
    --phase.wait_count;
  }
  if (phase.delay > 0) {
    SubCycle& begins = agents_[index].begins;
    begins = phase.delay_from_start ? std::max(now(), begins + phase.delay) : now() + phase.delay;
    phase.delay = 0;
    push(agents_[index].begins, GpuEvent{.kind = EventKind::resume, .agent = index});
  }
  if (now() < agents_[index].begins) return false;
  agents_[index].waits = false;
  if (phase.post_delay_phases > 0) agents_[index].begins = now();
  return true;
}

bool Gpu::has_counted(std::uint32_t number, std::uint32_t value, std::uint32_t index) {
  Flag& flag = flags_[number];
  if (flag.count >= value) return true;
  Agent& agent = agents_[index];
  if (!agent.waits_for_flag) {
    agent.waits_for_flag = true;
    agent.awaited = value;
    agent.next_flag_waiter = flag.waiter;
    flag.waiter = index;
  }
  return false;
}

// Whether the lines of the round at the load cursor are there, where flags in the data tell.
bool Gpu::round_arrived(std::uint32_t index) {
  const Agent& agent = agents_[index];
  return agent.load.arrival_flag == kNoFlag ||
         has_counted(agent.load.arrival_flag, agent.load.arrived_before + agent.load_end, index);
}

void Gpu::run_agent(std::uint32_t index) {
  for (;;) {
    Agent& agent = agents_[index];
    if (agent.finished || agent.queued) return;
    if (agent.at_fence) {
      if (agent.stores_out != 0 || now() < agent.last_acknowledge) return;
      agent.at_fence = false;
    } else {
      if (agent.waits && !flags_counted(index)) return;
      if (agent.returned >= agent.needed) rounds_complete(index);
      if (agent.store_round < agent.computed && !issue_stores(index)) return;
      if (agent.load_round < agent.rounds && !issue_loads(index)) return;
      if (agent.store_round != agent.rounds) return;
      if (agent.phase.post_count > 0 && agent.phase.fenced && (agent.phase.store_count > 0 || agent.stores_out > 0)) {
        agent.at_fence = true;
        if (agent.stores_out != 0) return;
        end_fence(index);
        return;
      }
    }
    if (!finish_phase(index)) return;
  }
}

// False when that was the last phase; the agent is gone then.
bool Gpu::finish_phase(std::uint32_t index) {
  for (std::uint32_t i = 0; i < agents_[index].phase.post_count; ++i) post(index, i);
  Agent& agent = agents_[index];
  ++agent.phase_index;
  if (is_resident(running_[agent.kernel].op) && !resident_stays(agent)) {
    finish_agent(index);
    return false;
  }
  if (agent.cursor != nullptr) {
    agent.phase = Phase{};
    if (!agent.cursor->next(agent.phase)) {
      finish_agent(index);
      return false;
    }
  } else {
    const KernelProgram& program = *running_[agent.kernel].program;
    if (agent.phase_index == program.phases() && !take_up_piece(index)) {
      finish_agent(index);
      return false;
    }
    agent.phase = program.phase(agent.block_number, agent.phase_index);
  }
  enter_phase(index);
  return true;
}

// A block of a persistent kernel goes on with another piece of work, if one is left for it.
bool Gpu::take_up_piece(std::uint32_t index) {
  Agent& agent = agents_[index];
  RunningKernel& kernel = running_[agent.kernel];
  if (!kernel.program->persistent()) return false;
  const bool claims = kernel.program->piece_order() == PieceOrder::claim && agent.block_number >= kernel.launched;
  const std::uint64_t next = kernel.launched + (claims ? kernel.launched + kernel.claimed : agent.block_number);
  if (next >= kernel.blocks) return false;
  kernel.claimed += claims ? 1 : 0;
  agent.block_number = next;
  agent.phase_index = 0;
  ++kernel.taken_up;
  ++kernel.blocks_done;
  return true;
}

void Gpu::post(std::uint32_t index, std::uint32_t number) {
  const Agent& agent = agents_[index];
  const FlagPost& flag = agent.phase.posts[number];
  if (flag.target == Target::launch) {
    push_control(now() + device_latency_, GpuEvent{.kind = EventKind::kernel_launched,
                                                   .line = flag.flag,
                                                   .agent = running_[agents_[index].kernel].op.value});
    return;
  }
  if (flag.target != Target::multicast) ++statistics_.flags_posted;
  GpuEvent event{.kind = EventKind::flag_at_l2, .gpu = flag.gpu, .line = flag.flag, .agent = index};
  SubCycle crossing = request_latency_;
  if (flag.target != Target::local) {
    event.kind = EventKind::egress;
    event.packet = flag.target == Target::multicast ? PacketKind::multicast_flag : PacketKind::flag;
    crossing = units_[agent.unit].to_links;
    ++flags_leaving_;  // its collective may end before it leaves
  }
  if ((agent.phase.proxied_posts >> number & 1U) != 0) crossing += agent.phase.proxy_delay;
  if ((agent.phase.late_posts >> number & 1U) != 0) {
    crossing += agent.phase.post_delay;
    if (agent.phase.post_delay_phases > 0) crossing += agent.phase.post_delay_phases * (now() - agent.begins);
  }
  push(now() + crossing, event);
}

void Gpu::finish_agent(std::uint32_t index) {
  Agent& agent = agents_[index];
  agent.finished = true;
  agent.cursor.reset();
  const std::uint32_t block = agent.block;
  blocks_[block].pipe_time += agent.pipe_time;
  if (agent.stores_out == 0) free_agents_.push_back(index);  // else when the last one is done
  if (--blocks_[block].agents_left == 0) end_block(block);
}

// The stores before the fence are done, or will be at the last acknowledgement: the fence then takes its own time.
void Gpu::end_fence(std::uint32_t index) {
  Agent& agent = agents_[index];
  agent.last_acknowledge = std::max(agent.last_acknowledge, now()) + agent.phase.fence;
  push(agent.last_acknowledge, GpuEvent{.kind = EventKind::resume, .agent = index});
}

}  // namespace weft
