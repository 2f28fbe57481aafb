// Contributions to the sums of routers, and the sums that come back: the transport is MessageEndpoint's, at the ports.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

void Gpu::on_contributions(const GpuEvent& event) {
  const auto stream = static_cast<std::uint16_t>(agents_[event.agent].block_number);
  const Time at = clock_.to_time(now());
  for (std::uint32_t i = 0; i < event.lines; ++i) {
    message_.post(event.gpu, stream, event.line + i, event.agent, static_cast<std::uint16_t>(kLineBytes), at, sending_);
  }
  send_chunks();
}

void Gpu::send_chunks() {
  for (MessageEndpoint::Sending& sending : sending_) {
    sending.packet.lane = ports_.lane_of_chunk(sending.port, sending.packet.entry).lane;
    submit(sending.packet, sending.port);
  }
  sending_.clear();
  const std::optional<Time> due = message_.next_timeout();
  if (!due || message_timer_runs_) return;
  message_timer_runs_ = true;
  push(std::max(clock_.to_subcycles(*due), now() + kCycle), GpuEvent{.kind = EventKind::message_timeout});
}

// The ports see the sum first: the window moves on, and whoever waits for it knows when L2 has it.
void Gpu::on_chunk_sum(const Packet& packet, std::uint16_t bundle) {
  const std::optional<std::uint32_t> agent = message_.sum_came(packet, clock_.to_time(now()), sending_);
  send_chunks();
  if (!agent) {
    give_credit(packet, bundle, now());
    return;
  }
  Packet sum = packet;
  sum.agent = *agent;
  push(now() + request_latency_, GpuEvent{.kind = EventKind::chunk_sum_at_l2, .gpu = bundle, .agent = keep(sum)});
}

void Gpu::on_chunk_sum_at_l2(const Packet& packet, std::uint16_t bundle) {
  const L2Cache::Access access = l2_.write({.first = packet.line, .count = 1, .communication = true}, now());
  count_communication(access, 1, true);
  give_credit(packet, bundle, access.started);
  const SubCycle told = access.done + units_[agents_[packet.agent].unit].from_links;
  stores_done(packet.agent, 1, told);
  if (is_fenced(agents_[packet.agent].unit)) fenced_accesses_done(1, told);
}

}  // namespace weft
