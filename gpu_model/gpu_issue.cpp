// Loads and stores of warps: as far as ports and outstanding requests let them, through L1 and translation.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "gpu_model/gpu_values.h"
#include "sim/error.h"

namespace weft {

namespace {
// Times of an answer's way: stores that are done so soon count as done at once, which saves an event for each. What a
// unit stores in that time may be too many; a choice.
constexpr SubCycle kSoon = 8;
}  // namespace

// Sets the cursor to the part of the stream that belongs to the round.
void Gpu::next_load_stream(Agent& agent) {
  if (agent.load_stream >= agent.load_count || agent.load_round >= agent.rounds) return;
  agent.load = agent.phase.loads[agent.load_stream];
  agent.load_line = agent.load.lines_before(agent.load_round, agent.rounds);
  agent.load_end = agent.load.lines_before(agent.load_round + 1, agent.rounds);
}

void Gpu::next_store_stream(Agent& agent) {
  if (agent.store_stream >= agent.store_count || agent.store_round >= agent.rounds) return;
  agent.store = agent.phase.stores[agent.store_stream];
  agent.store_line = agent.store.lines_before(agent.store_round, agent.rounds);
  agent.store_end = agent.store.lines_before(agent.store_round + 1, agent.rounds);
}

// False when the agent must wait for an outstanding store of its unit.
bool Gpu::issue_stores(std::uint32_t index) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  while (agent.store_round < agent.computed) {
    while (agent.store_stream < agent.store_count) {
      while (agent.store_line < agent.store_end) {
        if (unit.stores_out + kGroup > unit.store_limit) unit.stores_out -= unit.store_credits.take(now());
        if (unit.stores_out >= unit.store_limit) {
          wait_at(unit.store_waiters, index);
          look_for_credits(agent.unit);
          return false;
        }
        const std::uint32_t count =
            std::min({kGroup, agent.store_end - agent.store_line, unit.store_limit - unit.stores_out});
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
        const std::uint32_t places = agent.bulk ? kGroup : unit.load_limit - std::min(unit.load_limit, unit.loads_out);
        if (places == 0) {
          wait_at(unit.load_waiters, index);
          return false;
        }
        load_lines(index, std::min({kGroup, agent.load_end - agent.load_line, agent.lines_in_flight - agent.loads_out,
                                    places}));
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
  if (!agent.bulk) unit.loads_out += count;
  agent.loads_out += count;
  const std::uint32_t first = agent.load_line;
  agent.load_line += count;
  if (!agent.load.through_l1) {
    issue(index, agent.load, first, count, true);
    return;
  }
  // Lines of the instruction with the same fate go on together.
  const std::uint32_t sequence = running_[agent.kernel].sequence;
  const auto access = [&](std::uint32_t line) {
    return unit.l1.access(agent.load.first + line, sequence, agent.load.sectors(line));
  };
  const std::uint32_t end = first + count;
  L1Tags::Access next = access(first);
  for (std::uint32_t from = first; from < end;) {
    const L1Tags::Access found = next;
    std::uint32_t to = from + 1;
    while (to < end && (next = access(to)) == found) ++to;
    const SubCycle looked_up = std::max(unit.l1_free, now()) + l1_line_time_ * (to - from - 1);
    unit.l1_free = looked_up + l1_line_time_;
    if (found == L1Tags::Access::hit) {
      push(looked_up + l1_latency_,
           GpuEvent{.kind = EventKind::response, .lines = static_cast<std::uint8_t>(to - from), .agent = index});
    } else if (found == L1Tags::Access::miss) {
      issue(index, agent.load, from, to - from, true);
    } else {
      for (std::uint32_t line = from; line < to; ++line) unit.merged.push_back({agent.load.first + line, index});
    }
    from = to;
  }
}

// Lines have come that L1 waited for, and that others may wait for as well.
void Gpu::on_l1_fill(const GpuEvent& event) {
  Unit& unit = units_[agents_[event.agent].unit];
  const std::uint32_t sequence = running_[agents_[event.agent].kernel].sequence;
  for (std::uint32_t i = 0; i < event.lines; ++i) unit.l1.fill(event.line + i, sequence);
  on_response(event);
  std::size_t left = unit.merged.size();  // those that come meanwhile wait for lines of their own
  for (std::size_t i = 0; i < left;) {
    const Unit::Merged merged = unit.merged[i];
    if (merged.line - event.line >= event.lines) {
      ++i;
      continue;
    }
    unit.merged.erase(unit.merged.begin() + static_cast<std::ptrdiff_t>(i));
    --left;
    on_response(GpuEvent{.kind = EventKind::response, .agent = merged.agent});
  }
}

// When an access that would leave at `when` has its translation. One in a page that the unit does not know asks the
// GPU's TLB; those behind it in the same stream do not wait, as a round begins with the last of its lines anyway.
SubCycle Gpu::translated(Unit& unit, LineAddress line, SubCycle when) {
  const Tlb::Found found = unit.tlb.find(line);
  if (!found.hit) *found.ready = l2_.translate(line, when);
  return std::max(when, *found.ready);
}

void Gpu::issue(std::uint32_t index, const LineStream& stream, std::uint32_t line, std::uint32_t count, bool is_load) {
  const std::uint32_t unit_index = agents_[index].unit;
  Unit& unit = units_[unit_index];
  GpuEvent event{.kind = is_load ? EventKind::load_at_l2 : EventKind::store_at_l2,
                 .lines = static_cast<std::uint8_t>(count),
                 .line = stream.first + line,
                 .agent = index};
  if (is_load) event.set_copies(stream.copies);
  if (line == 0) event.first_sectors = stream.first_sectors;
  if (line + count == stream.lines) event.last_sectors = stream.last_sectors;
  SubCycle crossing = request_latency_;
  bool by_port = true;
  if (stream.target != Target::local) {
    const bool multicast = stream.target == Target::multicast;
    const bool tree = stream.target == Target::tree;
    event.packet = is_load ? (multicast ? PacketKind::multicast_read : PacketKind::read)
                   : tree  ? PacketKind::contribution
                           : (multicast     ? (stream.adds ? PacketKind::push : PacketKind::multicast_write)
                              : stream.adds ? PacketKind::update
                                            : PacketKind::write);
    event.kind = EventKind::egress;
    event.gpu = stream.gpu;
    if (is_fenced(unit_index)) fenced_ += count;
    if (!is_load) {
      event.set_arrival(stream.arrival_flag + 1);  // kNoFlag + 1 is 0
      remote_stores_ += count;
    } else {
      remote_loads_ += count;
    }
    crossing = unit.to_links;
    by_port = !unit.at_link_port;
  } else if (in_sram(event.line)) {
    event.kind = is_load ? EventKind::load_at_sram : EventKind::store_at_sram;
    crossing = 0;
    by_port = false;
  } else if (stream.atomic) {
    event.kind = is_load ? EventKind::fetch_atomic_at_l2 : EventKind::atomic_at_l2;
  } else if (stream.through_l1) {
    event.kind = EventKind::load_for_l1_at_l2;
  }
  if (work_.values != nullptr && !is_load) work_.values->stores(index, stream, line, count, event.packet);
  SubCycle leaves = now();
  if (by_port) {
    const bool sends_data = !is_load || stream.atomic;
    leaves = std::max(unit.out_free, leaves);
    unit.out_free = leaves + (sends_data ? unit.port_store_time : unit.load_request_time) * count;
    if (unit.tlb.translates() && (line == 0 || unit.tlb.enters_page(event.line, count))) {
      leaves = translated(unit, event.line + count - 1, leaves);
    }
  }
  if (among_many()) announce(event);
  push(leaves + crossing, event);
}

void Gpu::on_response(const GpuEvent& event) {
  Agent& agent = agents_[event.agent];
  Unit& unit = units_[agent.unit];
  const bool bulk = agent.bulk;
  if (!bulk) unit.loads_out -= event.lines;
  agent.loads_out -= event.lines;
  agent.returned += event.lines;
  run_agent(event.agent);
  if (bulk) return;
  wake(unit.load_waiters, unit.loads_out, unit.load_limit);
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

// Who waits for a place of a store goes on when a late one is done, which no event says otherwise.
void Gpu::look_for_credits(std::uint32_t unit) {
  const SubCycle when = units_[unit].next_look();
  if (when != Unit::kNever) push(when, GpuEvent{.kind = EventKind::store_credit, .lines = 0, .agent = unit});
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

// `count` stores of the agent are done at `when`, as the slice or the acknowledgement says.
void Gpu::stores_done(std::uint32_t index, std::uint32_t count, SubCycle when) {
  Agent& agent = agents_[index];
  Unit& unit = units_[agent.unit];
  RunningKernel& kernel = running_[agent.kernel];
  WEFT_CHECK(agent.stores_out >= count, "more stores acknowledged than issued");
  agent.stores_out -= count;
  const bool at_limit = !unit.store_waiters.empty();
  if (!at_limit && when <= now() + kSoon * response_latency_) {
    unit.stores_out -= count;
  } else if (at_limit || !unit.store_credits.add(when, count)) {  // who waits has to hear of this
    push(when,
         GpuEvent{.kind = EventKind::store_credit, .lines = static_cast<std::uint8_t>(count), .agent = agent.unit});
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
