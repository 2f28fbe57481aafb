// Links: requests that leave, packets that come, replies and acknowledgements.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "gpu_model/gpu_values.h"
#include "sim/error.h"

namespace weft {

namespace {
// Acknowledgements are collected, up to 8 together, and none waits longer than it takes to collect them at full rate.
constexpr std::uint32_t kCollectedAcknowledgements = 8;  // of the memory's lines
constexpr SubCycle kAcknowledgeTimer = cycles(std::int64_t{96});
constexpr std::uint32_t kCollectorsPerSource = 64;  // shared by its agents; who meets another's writes flushes them
constexpr std::uint8_t kFlagBytes = 16;
}  // namespace

void Gpu::on_egress(const GpuEvent& event) {
  if (event.packet == PacketKind::contribution) {
    on_contributions(event);
    return;
  }
  Packet packet;
  packet.kind = event.packet;
  packet.agent = event.agent;
  packet.source = static_cast<std::uint16_t>(id_.value);
  packet.destination = event.gpu;
  const bool multicast = packet.kind == PacketKind::multicast_write;
  const bool pushes = packet.kind == PacketKind::push;
  const bool to_switch =
      multicast || pushes || packet.kind == PacketKind::multicast_read || packet.kind == PacketKind::multicast_flag;
  const bool writes = packet.kind == PacketKind::write || packet.kind == PacketKind::update;
  if (multicast || pushes) packet.payload = kLineBytes;
  if (packet.kind == PacketKind::flag || packet.kind == PacketKind::multicast_flag) {
    packet.payload = kFlagBytes;
    --flags_leaving_;
  }
  packet.entry = multicast ? 1 : writes || pushes ? event.arrival() : 0;
  const std::uint32_t width = writes ? units_[agents_[event.agent].unit].packet_lines : 1;
  for (std::uint32_t i = 0; i < event.lines; i += width) {
    packet.line = event.line + i;
    if (writes) packet.payload = static_cast<std::uint16_t>(std::min(width, event.lines - i) * kLineBytes);
    const LineAddress by = packet.line / width;
    const LinkLane lane = to_switch ? ports_.lane_of_group(by, event.gpu) : ports_.lane_of(by, event.gpu);
    packet.lane = lane.lane;
    submit(packet, static_cast<std::uint16_t>(lane.bundle));
  }
}

void Gpu::submit(const Packet& packet, std::uint16_t bundle) { ports_.submit(packet, bundle, clock_.to_time(now())); }

void Gpu::give_credit(const Packet& packet, std::uint16_t bundle, SubCycle when) {
  ports_.give_credit(packet, bundle, clock_.to_time(when));
}

void Gpu::on_ingress(const Packet& packet, std::uint16_t bundle) {
  statistics_.delivered_bytes += packet.payload;
  switch (packet.kind) {
    case PacketKind::read:
    case PacketKind::multicast_read: {
      WEFT_CHECK(!in_sram(packet.line), "another GPU read the endpoint engine's memory");
      const L2Cache::Access access = l2_.read({.first = packet.line, .communication = true}, now());
      count_communication(access, 1, true);
      give_credit(packet, bundle, access.started);
      send_reply(packet, packet.kind == PacketKind::read ? PacketKind::read_reply : PacketKind::partial_reply, bundle,
                 access.done + response_latency_);
      return;
    }
    case PacketKind::write:
    case PacketKind::update:
    case PacketKind::multicast_write: {
      SubCycle started = now();
      const SubCycle done = write_came(packet, started);
      give_credit(packet, bundle, started);
      Packet written = packet;
      if (packet.kind != PacketKind::multicast_write && packet.entry != 0) {
        for (std::uint32_t bytes = 0; bytes < packet.payload; bytes += kLineBytes) count_flag(packet.entry - 1);
        written.entry = 0;
      }
      acknowledge(written, bundle, done);
      return;
    }
    case PacketKind::flag:
    case PacketKind::multicast_flag:
      give_credit(packet, bundle, now());
      if (packet.kind == PacketKind::flag) ++statistics_.flags_come;
      count_flag(packet.line);
      return;
    case PacketKind::read_reply: {
      if (work_.values != nullptr) work_.values->arrived(packet);
      give_credit(packet, bundle, now());
      Unit& unit = units_[agents_[packet.agent].unit];
      SubCycle arrives = now() + unit.from_links;
      if (!unit.at_link_port) arrives = unit.in_free = std::max(arrives, unit.in_free + unit.port_line_time);
      push(arrives, GpuEvent{.kind = EventKind::response, .agent = packet.agent});
      if (is_fenced(agents_[packet.agent].unit)) fenced_accesses_done(1, arrives);
      return;
    }
    case PacketKind::acknowledge:
      give_credit(packet, bundle, now());
      stores_done(packet.agent, packet.count, now() + units_[agents_[packet.agent].unit].from_links);
      if (is_fenced(agents_[packet.agent].unit)) fenced_accesses_done(packet.count, now());
      return;
    case PacketKind::multicast_sum:
    case PacketKind::partial_sum:
      on_sum(packet, bundle);
      return;
    case PacketKind::chunk_sum:
      on_chunk_sum(packet, bundle);
      return;
    case PacketKind::push:
    case PacketKind::contribution:
    case PacketKind::partial_reply:
      break;
  }
  throw InternalError("a push, a contribution or a partial reply came to a GPU");
}

// The lines of a packet go to where they belong. `started`: the last of them was taken.
SubCycle Gpu::write_came(const Packet& packet, SubCycle& started) {
  const std::uint32_t lines = packet.payload / kLineBytes;
  if (work_.values != nullptr) work_.values->write(packet);
  if (in_sram(packet.line)) return access_sram(lines);
  L2Cache::Access access;
  if (packet.kind != PacketKind::update) {
    access = l2_.write({.first = packet.line, .count = lines, .communication = true}, now());
  } else {
    for (std::uint32_t i = 0; i < lines; ++i) {
      const L2Cache::Access one = l2_.update(packet.line + i, now());
      access.started = std::max(access.started, one.started);
      access.done = std::max(access.done, one.done);
    }
  }
  count_communication(access, lines, true);
  started = std::max(started, access.started);
  return access.done;
}

void Gpu::send_reply(const Packet& request, PacketKind kind, std::uint16_t bundle, SubCycle when) {
  Packet reply = request;
  reply.kind = kind;
  reply.payload = kLineBytes;
  if (work_.values != nullptr) work_.values->serve(reply);
  push(when, GpuEvent{.kind = EventKind::egress_reply, .gpu = bundle, .agent = keep(reply)});
}

void Gpu::acknowledge(const Packet& write, std::uint16_t bundle, SubCycle when) {
  const std::uint32_t place = acknowledgement_of(std::uint32_t{write.source} * kCollectorsPerSource +
                                                 (write.agent * 7U + bundle) % kCollectorsPerSource);
  Acknowledgement& collected = acknowledgements_.all[place];
  const bool other =
      collected.packet.agent != write.agent || collected.packet.entry != write.entry || collected.bundle != bundle;
  if (collected.packet.count > 0 && other) flush_acknowledge(place, when);
  if (collected.packet.count == 0) {
    collected.packet = write;
    collected.packet.kind = PacketKind::acknowledge;
    collected.packet.payload = 0;
    collected.packet.count = 0;
    collected.bundle = bundle;
  }
  collected.packet.count = static_cast<std::uint8_t>(collected.packet.count + write.payload / kLineBytes);
  if (collected.packet.count * spec_.grain >= kCollectedAcknowledgements) {
    flush_acknowledge(place, when);
    if (!collected.timer_runs) forget_acknowledgement(place);
  } else if (!collected.timer_runs) {
    collected.timer_runs = true;
    push(when + kAcknowledgeTimer, GpuEvent{.kind = EventKind::flush_acknowledge, .agent = place});
  }
}

// The place where a collector's writes are counted: a GPU of thousands hears from few at a time.
std::uint32_t Gpu::acknowledgement_of(std::uint32_t collector) {
  std::uint32_t& first = acknowledgements_.first[collector % kAcknowledgementHashes];
  for (std::uint32_t at = first; at != kNoAcknowledgement; at = acknowledgements_.all[at].next) {
    if (acknowledgements_.all[at].collector == collector) return at;
  }
  std::uint32_t place = acknowledgements_.free;
  if (place == kNoAcknowledgement) {
    place = static_cast<std::uint32_t>(acknowledgements_.all.size());
    acknowledgements_.all.emplace_back();
  } else {
    acknowledgements_.free = acknowledgements_.all[place].next;
  }
  Acknowledgement& fresh = acknowledgements_.all[place];
  fresh.packet.count = 0;
  fresh.collector = collector;
  fresh.next = first;
  first = place;
  return place;
}

void Gpu::forget_acknowledgement(std::uint32_t place) {
  Acknowledgement& gone = acknowledgements_.all[place];
  std::uint32_t* link = &acknowledgements_.first[gone.collector % kAcknowledgementHashes];
  while (*link != place) link = &acknowledgements_.all[*link].next;
  *link = gone.next;
  gone.next = acknowledgements_.free;
  acknowledgements_.free = place;
}

// They cross from L2 to the link ports like any answer.
void Gpu::flush_acknowledge(std::uint32_t place, SubCycle when) {
  Acknowledgement& collected = acknowledgements_.all[place];
  if (collected.packet.count > 0) {
    push(std::max(when, now()) + response_latency_,
         GpuEvent{.kind = EventKind::egress_reply, .gpu = collected.bundle, .agent = keep(collected.packet)});
  }
  collected.packet.count = 0;
}

std::uint32_t Gpu::keep(const Packet& packet) {
  if (free_packets_.empty()) {
    packets_.push_back(packet);
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  const std::uint32_t place = free_packets_.back();
  free_packets_.pop_back();
  packets_[place] = packet;
  return place;
}

bool Gpu::is_fenced(std::uint32_t unit) const {
  return unit < spec_.compute_units || (private_units_ > 0 && unit >= private_units_);
}

// Which accesses an answer is for is not told apart: the fence is over when as many are done as were issued before it.
void Gpu::fenced_accesses_done(std::uint32_t count, SubCycle when) {
  fenced_done_ += count;
  WEFT_CHECK(fenced_done_ <= fenced_, "more accesses to other GPUs are done than were issued");
  while (!flushing_.empty() && running_[flushing_.front()].flushes <= fenced_done_) {
    const RunningKernel& kernel = running_[flushing_.front()];
    const SubCycle end = std::max(kernel.last_acknowledge, when);
    ledgers_[kernel.op.value].held_by_links += static_cast<double>(end - kernel.last_acknowledge);
    push_control(end, GpuEvent{.kind = EventKind::op_ends, .agent = flushing_.front()});
    flushing_.erase(flushing_.begin());
  }
}

}  // namespace weft
