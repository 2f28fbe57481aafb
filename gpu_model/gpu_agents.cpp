// Warps: they load, compute and store the rounds of their phases, as far as ports, pipes and outstanding requests let
// them.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "sim/error.h"

namespace weft {

namespace {
// The lines of a stream that belong to rounds before `round`.
std::uint32_t lines_before(const LineStream& stream, std::uint32_t round, std::uint32_t rounds) {
  return static_cast<std::uint32_t>(std::uint64_t{stream.lines} * round / rounds);
}

}  // namespace

// Puts the cursors of a new phase to its start.
void Gpu::enter_phase(std::uint32_t index) {
  Agent& agent = agents_[index];
  const Phase& phase = agent.phase;
  agent.rounds = phase.rounds;
  agent.stages = phase.stages;
  agent.load_count = phase.load_count;
  agent.store_count = phase.store_count;
  agent.waits = phase.wait_count > 0 || phase.delay > 0;
  agent.returned = agent.complete = agent.computed = agent.needed = 0;
  for (std::uint32_t s = 0; s < phase.load_count; ++s) agent.needed += lines_before(phase.loads[s], 1, phase.rounds);
  agent.load_round = agent.store_round = 0;
  agent.load_stream = agent.store_stream = 0;
  next_load_stream(agent);
  next_store_stream(agent);
}

// Sets the cursor to the part of the stream that belongs to the round.
void Gpu::next_load_stream(Agent& agent) {
  if (agent.load_stream >= agent.load_count || agent.load_round >= agent.rounds) return;
  agent.load = agent.phase.loads[agent.load_stream];
  agent.load_line = lines_before(agent.load, agent.load_round, agent.rounds);
  agent.load_end = lines_before(agent.load, agent.load_round + 1, agent.rounds);
}

void Gpu::next_store_stream(Agent& agent) {
  if (agent.store_stream >= agent.store_count || agent.store_round >= agent.rounds) return;
  agent.store = agent.phase.stores[agent.store_stream];
  agent.store_line = lines_before(agent.store, agent.store_round, agent.rounds);
  agent.store_end = lines_before(agent.store, agent.store_round + 1, agent.rounds);
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
    agents_[index].begins = now() + phase.delay;
    phase.delay = 0;
    push(agents_[index].begins, Event{.kind = EventKind::resume, .agent = index});
  }
  if (now() < agents_[index].begins) return false;
  agents_[index].waits = false;
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

// Rounds whose loads are all there go to the pipe, or are through at once when they compute nothing.
void Gpu::rounds_complete(std::uint32_t index) {
  Agent& agent = agents_[index];
  const Phase& phase = agent.phase;
  while (agent.complete < phase.rounds && agent.returned >= agent.needed) {
    if (phase.load_count == 0 && phase.compute > 0 && agent.complete > agent.computed) return;  // one at a time
    ++agent.complete;
    for (std::uint32_t s = 0; s < phase.load_count; ++s) {
      agent.needed += lines_before(phase.loads[s], agent.complete + 1, phase.rounds) -
                      lines_before(phase.loads[s], agent.complete, phase.rounds);
    }
    if (phase.compute == 0) {
      ++agent.computed;
      continue;
    }
    SubCycle& pipe_free = units_[agent.unit].pipe_free[static_cast<std::size_t>(phase.pipe)];
    WorkAhead& ahead = units_[agent.unit].pipe_ahead[static_cast<std::size_t>(phase.pipe)];
    const SubCycle start = std::max(pipe_free, now());
    if (running_[agent.kernel].communication) {
      ahead.add(now(), pipe_free, phase.compute);
    } else {
      blocks_[agent.block].held_by_pipe += ahead.communication(now(), pipe_free) * static_cast<double>(start - now());
    }
    pipe_free = start + phase.compute;
    agent.pipe_time += pipe_free - std::max(now(), agent.pipe_until);
    agent.pipe_until = pipe_free;
    push(pipe_free, Event{.kind = EventKind::computed, .agent = index});
  }
}

// False when the agent must wait for an outstanding store of its unit.
bool Gpu::issue_stores(std::uint32_t index) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  while (agent.store_round < agent.computed) {
    while (agent.store_stream < agent.store_count) {
      while (agent.store_line < agent.store_end) {
        if (unit.stores_out >= unit.outstanding_limit) {
          wait_at(unit.store_waiters, index);
          return false;
        }
        const std::uint32_t count =
            std::min({kGroup, agent.store_end - agent.store_line, unit.outstanding_limit - unit.stores_out});
        unit.stores_out += count;
        agent.stores_out += count;
        running_[agent.kernel].stores_out += count;
        issue(index, agent.store, agent.store_line, count, false);
        agent.store_line += count;
      }
      ++agent.store_stream;
      next_store_stream(agent);
    }
    ++agent.store_round;
    agent.store_stream = 0;
    next_store_stream(agent);
  }
  return true;
}

// False when the agent must wait for an outstanding load, its own or of its unit.
bool Gpu::issue_loads(std::uint32_t index) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  const std::uint32_t last = std::min(agent.rounds, agent.computed + agent.stages);
  while (agent.load_round < last) {
    while (agent.load_stream < agent.load_count) {
      if (!round_arrived(index)) return false;  // the flag resumes it
      while (agent.load_line < agent.load_end) {
        if (agent.loads_out >= agent.lines_in_flight) return false;  // an own response resumes it
        if (unit.loads_out >= unit.outstanding_limit) {
          wait_at(unit.load_waiters, index);
          return false;
        }
        load_lines(index, std::min({kGroup, agent.load_end - agent.load_line, agent.lines_in_flight - agent.loads_out,
                                    unit.outstanding_limit - unit.loads_out}));
      }
      ++agent.load_stream;
      next_load_stream(agent);
    }
    ++agent.load_round;
    agent.load_stream = 0;
    next_load_stream(agent);
  }
  return true;
}

// The next `count` lines of the stream at the cursor.
void Gpu::load_lines(std::uint32_t index, std::uint32_t count) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  unit.loads_out += count;
  agent.loads_out += count;
  const std::uint32_t first = agent.load_line;
  agent.load_line += count;
  if (!agent.load.through_l1) {
    issue(index, agent.load, first, count, true);
    return;
  }
  for (std::uint32_t line = first; line < first + count; ++line) {
    if (unit.l1.access(agent.load.first + line, running_[agent.kernel].sequence)) {
      push(now() + l1_latency_, Event{.kind = EventKind::response, .agent = index});
    } else {
      issue(index, agent.load, line, 1, true);
    }
  }
}

void Gpu::issue(std::uint32_t index, const LineStream& stream, std::uint32_t line, std::uint32_t count, bool is_load) {
  Unit& unit = units_[agents_[index].unit];
  Event event{.kind = is_load ? EventKind::load_at_l2 : EventKind::store_at_l2,
              .lines = static_cast<std::uint8_t>(count),
              .gpu = stream.gpu,
              .line = stream.first + line,
              .agent = index};
  if (line == 0) event.first_sectors = stream.first_sectors;
  if (line + count == stream.lines) event.last_sectors = stream.last_sectors;
  SubCycle crossing = request_latency_;
  bool by_port = true;
  if (stream.target != Target::local) {
    const bool multicast = stream.target == Target::multicast;
    event.packet = is_load ? (multicast ? PacketKind::multicast_read : PacketKind::read)
                           : (multicast     ? PacketKind::multicast_write
                              : stream.adds ? PacketKind::update
                                            : PacketKind::write);
    event.kind = EventKind::egress;
    if (!is_load) {
      event.set_arrival(stream.arrival_flag + 1);  // kNoFlag + 1 is 0
      remote_stores_ += count;
    }
    crossing = unit.to_links;
    by_port = !unit.at_link_port;
  } else if (in_sram(event.line)) {
    event.kind = is_load ? EventKind::load_at_sram : EventKind::store_at_sram;
    crossing = 0;
    by_port = false;
  }
  SubCycle leaves = now();
  if (by_port) {
    leaves = std::max(unit.out_free, leaves);
    unit.out_free = leaves + (is_load ? unit.load_request_time : unit.port_line_time) * count;
  }
  push(leaves + crossing, event);
}

// False when that was the last phase; the agent is gone then.
bool Gpu::finish_phase(std::uint32_t index) {
  for (std::uint32_t i = 0; i < agents_[index].phase.post_count; ++i) post(index, agents_[index].phase.posts[i]);
  Agent& agent = agents_[index];
  ++agent.phase_index;
  if (agent.cursor != nullptr) {
    agent.phase = Phase{};
    if (!agent.cursor->next(agent.phase)) {
      finish_agent(index);
      return false;
    }
  } else {
    const KernelProgram& program = *running_[agent.kernel].program;
    if (agent.phase_index == program.phases()) {
      finish_agent(index);
      return false;
    }
    agent.phase = program.phase(agent.block_number, agent.phase_index);
  }
  enter_phase(index);
  return true;
}

void Gpu::post(std::uint32_t index, const FlagPost& flag) {
  if (flag.target == Target::launch) {
    push(now() + device_latency_,
         Event{
             .kind = EventKind::kernel_launched, .line = flag.flag, .agent = running_[agents_[index].kernel].op.value});
    return;
  }
  Event event{.kind = EventKind::flag_at_l2, .gpu = flag.gpu, .line = flag.flag, .agent = index};
  SubCycle crossing = request_latency_;
  if (flag.target != Target::local) {
    event.kind = EventKind::egress;
    event.packet = flag.target == Target::multicast ? PacketKind::multicast_flag : PacketKind::flag;
    crossing = units_[agents_[index].unit].to_links;
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

void Gpu::on_response(const Event& event) {
  Agent& agent = agents_[event.agent];
  Unit& unit = units_[agent.unit];
  unit.loads_out -= event.lines;
  agent.loads_out -= event.lines;
  agent.returned += event.lines;
  run_agent(event.agent);
  wake(unit.load_waiters, unit.loads_out, unit.outstanding_limit);
}

void Gpu::on_computed(const Event& event) {
  ++agents_[event.agent].computed;
  run_agent(event.agent);
}

void Gpu::wait_at(WaitQueue& queue, std::uint32_t index) {
  Agent& agent = agents_[index];
  agent.queued = true;
  agent.next_waiter = WaitQueue::kNone;
  if (queue.empty()) {
    queue.first = index;
  } else {
    agents_[queue.last].next_waiter = index;
  }
  queue.last = index;
}

// Waiters go on until the unit is at its limit again. Who cannot go on queues up again only there, so this ends.
void Gpu::wake(WaitQueue& queue, const std::uint32_t& outstanding, std::uint32_t limit) {
  while (!queue.empty() && outstanding < limit) {
    const std::uint32_t index = queue.first;
    queue.first = agents_[index].next_waiter;
    agents_[index].queued = false;
    run_agent(index);
  }
}

// The stores before the fence are done, or will be at the last acknowledgement: the fence then takes its own time.
void Gpu::end_fence(std::uint32_t index) {
  Agent& agent = agents_[index];
  agent.last_acknowledge = std::max(agent.last_acknowledge, now()) + agent.phase.fence;
  push(agent.last_acknowledge, Event{.kind = EventKind::resume, .agent = index});
}

// `count` stores of the agent are done at `when`, as the slice or the acknowledgement says.
void Gpu::stores_done(std::uint32_t index, std::uint32_t count, SubCycle when) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  Running& kernel = running_[agent.kernel];
  WEFT_CHECK(agent.stores_out >= count, "more stores acknowledged than issued");
  agent.stores_out -= count;
  if (unit.store_waiters.empty()) {
    unit.stores_out -= count;
  } else {  // the unit is at its limit: it matters when it hears of this
    push(when, Event{.kind = EventKind::store_credit, .lines = static_cast<std::uint8_t>(count), .agent = agent.unit});
  }
  kernel.stores_out -= count;
  agent.last_acknowledge = std::max(agent.last_acknowledge, when);
  kernel.last_acknowledge = std::max(kernel.last_acknowledge, when);
  if (agent.finished) {
    const std::uint32_t slot = agent.kernel;
    if (agent.stores_out == 0) free_agents_.push_back(index);
    if (kernel.stores_out == 0) end_kernel_if_drained(slot);
  } else if (agent.at_fence && agent.stores_out == 0) {
    end_fence(index);
  }
}

}  // namespace weft
