#include "network/switch.h"

#include <algorithm>
#include <numeric>

#include "sim/error.h"

namespace weft {

namespace {
// The tick of a switch's event queue: 0.52 ns. A packet's passage is rounded up to it; lanes then keep exact times.
constexpr int kTickShift = 19;
constexpr std::uint32_t kNoHold = ~std::uint32_t{0};

bool is_request(PacketKind kind) { return virtual_channel(kind) == VirtualChannel::request; }
}  // namespace

Switch::Switch(const SwitchSpec& spec, const std::shared_ptr<const LinkTiming>& link, std::uint32_t lanes,
               const std::vector<SwitchPort>& ports, std::unique_ptr<Reducer> reducer, std::uint32_t first_gpu,
               std::vector<std::vector<std::uint32_t>> groups)
    : spec_(spec),
      link_latency_(link->spec().latency),
      groups_(std::move(groups)),
      first_gpu_(first_gpu),
      ports_(ports),
      reducer_(std::move(reducer)),
      stalled_(ports.size()),
      acknowledged_(ports.size()) {
  if (groups_.empty()) {
    groups_.emplace_back(ports_.size());
    std::iota(groups_.front().begin(), groups_.front().end(), 0U);
  }
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const SwitchPort& port = ports_[p];
    outputs_.emplace_back(link, lanes, *port.out);
    for (std::uint32_t lane = 0; lane < port.lanes.size(); ++lane) {
      if (port.lanes[lane] != nullptr) outputs_.back().set_lane_timing(lane, port.lanes[lane]);
    }
    port.in->credits.announce_to(inbox_, p);
    port.in->packets.announce_to(inbox_, static_cast<std::uint32_t>(ports_.size()) + p);
  }
}

std::uint32_t Switch::input_port(const Packet& packet) const {
  return port_of(is_request(packet.kind) ? packet.source : packet.destination);
}

Time Switch::now() const { return Time(wheel_.now() << kTickShift); }

std::int64_t Switch::tick_at_or_after(Time t) const {
  return (t.count() + (std::int64_t{1} << kTickShift) - 1) >> kTickShift;
}

Time Switch::next_activity() const {
  const std::int64_t tick = wheel_.next();
  return tick == TimingWheel<Event>::kNever ? Time::max() : Time(tick << kTickShift);
}

void Switch::advance(Time until) {
  inbox_.drain([&](std::uint32_t slot) {
    if (slot < ports_.size()) {
      departures_.clear();
      ports_[slot].in->credits.receive(
          [&](const Credit& credit) { outputs_[slot].receive_credit(credit, departures_); });
      for (const Departure& departure : departures_) departed(departure.held_by, departure.start);
      return;
    }
    ports_[slot - ports_.size()].in->packets.receive([&](const Packet& packet) {
      ++statistics_.packets;
      wheel_.push(tick_at_or_after(packet.when + spec_.latency), Event{packet, false});
    });
  });
  wheel_.run_until(tick_at_or_after(until), [this](const Event& event) { handle(event); });
}

void Switch::handle(const Event& event) {
  const Packet& packet = event.packet;
  if (event.made_here) {
    if (packet.kind == PacketKind::read_reply) {
      Packet reply = reducer_->close(packet.entry);
      const std::uint32_t port = port_of(reply.source);
      reply.kind = PacketKind::read_reply;
      reply.payload = packet.payload;
      statistics_.added_bytes += reply.payload;
      send(reply, port, kNoHold);
      resume_stalled(port);
    } else {
      send(packet, port_of(packet.source), kNoHold);
    }
    return;
  }
  switch (packet.kind) {
    case PacketKind::partial_reply:
      handle_partial_reply(packet);
      return;
    case PacketKind::acknowledge:
      handle_acknowledge(packet);
      return;
    case PacketKind::read_reply:
      send(packet, port_of(packet.source), hold(packet, 1));
      return;
    default:
      handle_request(packet);
  }
}

void Switch::handle_request(const Packet& packet) {
  StalledPort& stalled = stalled_[port_of(packet.source)];
  if (!stalled.packets.empty()) {  // a full table stalls its port: nothing overtakes
    stalled.packets.push_back(packet);
    return;
  }
  switch (packet.kind) {
    case PacketKind::multicast_read:
      if (!start_reduction(packet)) {
        stalled.packets.push_back(packet);
        stalled.since = now();
      }
      return;
    case PacketKind::multicast_write:
    case PacketKind::multicast_flag:
      multicast(packet);
      return;
    default:
      send(packet, port_of(packet.destination), hold(packet, 1));
  }
}

bool Switch::start_reduction(const Packet& packet) {
  WEFT_CHECK(reducer_ != nullptr, "a multicast read reached a switch that does not reduce");
  const auto members = static_cast<std::uint32_t>(groups_.at(packet.destination).size());
  const std::optional<std::uint32_t> entry = reducer_->open(port_of(packet.source), packet, members);
  if (!entry) return false;
  Packet copy = packet;
  copy.entry = *entry;
  multicast(copy);
  return true;
}

void Switch::resume_stalled(std::uint32_t port) {
  StalledPort& stalled = stalled_[port];
  if (stalled.packets.empty()) return;
  if (!start_reduction(stalled.packets.front())) return;
  stalled.packets.pop_front();
  reducer_->count_stall(now() - stalled.since);
  std::deque<Packet> waiting;
  waiting.swap(stalled.packets);
  for (const Packet& packet : waiting) handle_request(packet);  // up to the next one that finds no entry
}

void Switch::multicast(const Packet& packet) {
  if (packet.kind == PacketKind::multicast_write) statistics_.multicast_bytes += packet.payload;
  const std::vector<std::uint32_t>& members = groups_.at(packet.destination);
  statistics_.added_bytes += (std::ssize(members) - 1) * packet.payload;
  const std::uint32_t place = hold(packet, static_cast<std::uint32_t>(members.size()));
  Packet copy = packet;
  if (packet.kind == PacketKind::multicast_write) copy.entry = packet.destination + 1U;  // in its acknowledgements, too
  for (const std::uint32_t member : members) {
    copy.destination = static_cast<std::uint16_t>(first_gpu_ + member);
    send(copy, member, place);
  }
}

void Switch::handle_partial_reply(const Packet& packet) {
  give_credit(port_of(packet.destination), packet.lane, VirtualChannel::response, now());
  statistics_.added_bytes -= packet.payload;
  const std::optional<Time> ready = reducer_->add(packet.entry, packet, now());
  if (!ready) return;
  Packet reply = packet;
  reply.kind = PacketKind::read_reply;
  wheel_.push(tick_at_or_after(*ready), Event{reply, true});
}

void Switch::handle_acknowledge(const Packet& packet) {
  if (packet.entry == 0) {  // of a write to one GPU
    send(packet, port_of(packet.source), hold(packet, 1));
    return;
  }
  give_credit(port_of(packet.destination), packet.lane, VirtualChannel::response, now());
  std::vector<std::uint32_t>& done = acknowledged_[port_of(packet.source)];
  if (packet.agent >= done.size()) done.resize(packet.agent + 1, 0);
  std::uint32_t& copies = done[packet.agent];
  copies += packet.count;
  const auto members = static_cast<std::uint32_t>(groups_.at(packet.entry - 1).size());
  if (copies < members) return;
  Packet combined = packet;
  combined.count = static_cast<std::uint8_t>(copies / members);
  copies %= members;
  send(combined, port_of(packet.source), kNoHold);
}

void Switch::send(const Packet& packet, std::uint32_t port, std::uint32_t hold) {
  Time start;
  if (outputs_[port].submit(packet, now(), hold, start)) departed(hold, start);
}

std::uint32_t Switch::hold(const Packet& packet, std::uint32_t copies) {
  std::uint32_t place = 0;
  if (free_holds_.empty()) {
    place = static_cast<std::uint32_t>(holds_.size());
    holds_.emplace_back();
  } else {
    place = free_holds_.back();
    free_holds_.pop_back();
  }
  holds_[place] = {static_cast<std::uint16_t>(input_port(packet)), packet.lane, virtual_channel(packet.kind), copies,
                   Time(0)};
  return place;
}

void Switch::departed(std::uint32_t place, Time start) {
  if (place == kNoHold) return;
  Hold& held = holds_[place];
  held.last = std::max(held.last, start);
  if (--held.copies != 0) return;
  give_credit(held.port, held.lane, held.channel, held.last);
  free_holds_.push_back(place);
}

void Switch::give_credit(std::uint32_t port, std::uint8_t lane, VirtualChannel channel, Time when) {
  ports_[port].out->credits.send({when + link_latency_, lane, channel});
}

bool Switch::holds_packets() const {
  return holds_.size() != free_holds_.size() ||
         std::any_of(stalled_.begin(), stalled_.end(), [](const StalledPort& s) { return !s.packets.empty(); });
}

}  // namespace weft
