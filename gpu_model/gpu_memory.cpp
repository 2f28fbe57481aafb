// L2.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "gpu_model/gpu_values.h"

namespace weft {

void Gpu::count_communication(const L2Cache::Access& access, std::uint32_t lines, bool communication) {
  statistics_.memory_transactions += lines;
  if (communication) statistics_.communication_fetched_bytes += access.fetched_bytes;
}

L2Cache::Lines Gpu::lines_of(const GpuEvent& event, const Unit& unit, bool communication) {
  return {.first = event.line,
          .count = event.lines,
          .first_sectors = event.first_sectors,
          .last_sectors = event.last_sectors,
          .partition = unit.partition,
          .communication = communication};
}

// An answer that is back at the unit at `back`: what it took, and what of that communication cost.
void Gpu::book(OpId op, const L2Cache::Access& access, std::uint32_t lines, SubCycle back) {
  KernelLedger& ledger = ledgers_[op.value];
  ledger.latency += static_cast<double>((back - now() + request_latency_) * lines);
  ledger.held_by_cache += access.held_by_cache;
  ledger.held_by_hbm += access.held_by_hbm;
}

void Gpu::on_load_at_l2(const GpuEvent& event) {
  const Agent& agent = agents_[event.agent];
  const Unit& unit = units_[agent.unit];
  if (work_.values != nullptr) work_.values->loaded(event.agent, event.line, event.lines);
  // The unit's port sends the lines one after another.
  respond(event, l2_.read(lines_of(event, unit, running_[agent.kernel].communication), now(), unit.load_request_time),
          event.kind == EventKind::load_at_l2 ? EventKind::response : EventKind::l1_fill);
}

// The lines go back to the unit that asked.
void Gpu::respond(const GpuEvent& event, const L2Cache::Access& access, EventKind kind) {
  const Agent& agent = agents_[event.agent];
  const RunningKernel& kernel = running_[agent.kernel];
  Unit& unit = units_[agent.unit];
  count_communication(access, event.lines, kernel.communication);
  SubCycle comes = access.done + response_latency_;
  if (gpc_ports_.line_time > 0 && agent.unit < order_.gpc_of.size()) {
    comes += gpc_ports_.wait(order_.gpc_of[agent.unit], event.lines, now());
  }
  const SubCycle port_time = unit.port_line_time * event.lines * (1 + event.copies());
  if (kernel.communication) {
    unit.in_ahead.add(comes, unit.in_free, port_time);
  } else {
    const double share = unit.in_ahead.share(comes, unit.in_free);
    if (share > 0) {
      ledgers_[kernel.op.value].held_by_port +=
          share * event.lines * static_cast<double>(std::max<SubCycle>(unit.in_free + port_time - comes, 0));
    }
  }
  unit.in_free = std::max(unit.in_free + port_time, comes);
  book(kernel.op, access, event.lines, unit.in_free);
  push(unit.in_free, GpuEvent{.kind = kind, .lines = event.lines, .line = event.line, .agent = event.agent});
}

// One port of the endpoint engine's memory, for reads and writes; the time at which it is through.
SubCycle Gpu::access_sram(std::uint32_t lines) {
  sram_free_ = std::max(sram_free_, now()) + sram_line_time_ * lines;
  return sram_free_;
}

void Gpu::on_store_at_l2(const GpuEvent& event) {
  if (work_.values != nullptr) work_.values->stored(event.agent, event.line, event.lines);
  const Agent& agent = agents_[event.agent];
  const RunningKernel& kernel = running_[agent.kernel];
  const Unit& unit = units_[agent.unit];
  const L2Cache::Access access = l2_.write(lines_of(event, unit, kernel.communication), now(), unit.port_store_time);
  count_communication(access, event.lines, kernel.communication);
  book(kernel.op, access, event.lines, access.done + response_latency_);
  stores_done(event.agent, event.lines, access.done + response_latency_);
}

void Gpu::on_atomic_at_l2(const GpuEvent& event, bool value_returns) {
  const Agent& agent = agents_[event.agent];
  const RunningKernel& kernel = running_[agent.kernel];
  const Unit& unit = units_[agent.unit];
  const L2Cache::Access access = l2_.atomic(lines_of(event, unit, kernel.communication), now(), unit.port_store_time);
  if (value_returns) {
    respond(event, access, EventKind::response);
    return;
  }
  count_communication(access, event.lines, kernel.communication);
  book(kernel.op, access, event.lines, access.done + response_latency_);
  stores_done(event.agent, event.lines, access.done + response_latency_);
}

void Gpu::count_flag(std::uint32_t index) {
  Flag& flag = flags_[index];
  ++flag.count;
  std::uint32_t* link = &flag.waiter;
  while (*link != WaitQueue::kNone) {
    Agent& agent = agents_[*link];
    if (flag.count < agent.awaited) {
      link = &agent.next_flag_waiter;
      continue;
    }
    // Who waits for a separate flag goes on when the poll that sees it has come back. Where the flags are in the data,
    // that poll is the load.
    // An engine at the link ports is told.
    const SubCycle seen =
        units_[agent.unit].at_link_port ? 0 : poll_wait_ + (agent.waits ? response_latency_ : -request_latency_);
    push(now() + seen, GpuEvent{.kind = EventKind::resume, .agent = *link});
    agent.waits_for_flag = false;
    *link = agent.next_flag_waiter;
  }
}

}  // namespace weft
