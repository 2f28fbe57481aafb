// What every switch does: packets in and out, credits, copies of multicasts and their acknowledgements.
#include "network/switch.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {
// The tick of a switch's event queue: 0.52 ns. A packet's passage is rounded up to it; lanes then keep exact times.
constexpr int kTickShift = 19;
}  // namespace

Switch::Switch(const SwitchSpec& spec, const std::shared_ptr<const LinkTiming>& link, std::uint32_t lanes,
               const std::vector<SwitchPort>& ports, std::unique_ptr<Reducer> reducer, const SwitchPlace& place,
               const std::vector<MulticastGroup>& groups)
    : spec_(spec),
      link_latency_(link->spec().latency),
      lanes_(lanes),
      place_(place),
      ports_down_(static_cast<std::uint32_t>(ports.size()) - place.ports_up),
      ports_(ports),
      reducer_(std::move(reducer)),
      stalled_(ports.size() * lanes),
      push_acknowledges_(ports.size() * lanes),
      timeout_armed_(ports.size() * lanes, false) {
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const SwitchPort& port = ports_[p];
    outputs_.emplace_back(link, lanes, *port.out, true);
    for (std::uint32_t lane = 0; lane < port.lanes.size(); ++lane) {
      if (port.lanes[lane] != nullptr) outputs_.back().set_lane_timing(lane, port.lanes[lane]);
    }
    port.in->credits.announce_to(inbox_, p);
    port.in->packets.announce_to(inbox_, static_cast<std::uint32_t>(ports_.size()) + p);
  }
  for (const MulticastGroup& members : groups) {
    Group& group = groups_.emplace_back();
    group.type = members.type;
    group.images = members.images;
    group.home = members.home;
    for (const GpuId gpu : members.gpus) {
      group.gpus.push_back(static_cast<std::uint16_t>(gpu.value));
      if (!is_below(gpu.value)) continue;
      ++group.gpus_below;
      if (group.home && *group.home != gpu) continue;
      const std::uint32_t port = port_to(gpu.value, 0);
      if (group.below.empty() || group.below.back().port != port || place_.folded) group.below.push_back({port, 0});
      ++group.below.back().gpus;
    }
  }
}

// Down to the GPU, or up to the spine that all switches of the plane take for the address.
std::uint32_t Switch::port_to(std::uint32_t gpu, LineAddress line) const {
  if (is_below(gpu)) return (gpu - place_.first_gpu) / place_.gpus_per_port;
  WEFT_CHECK(place_.ports_up > 0, "a packet to a GPU that the switch does not reach");
  return ports_down_ + (line + (line >> 8)) / place_.interleave % place_.ports_up;
}

Time Switch::now() const { return Time(wheel_.now() << kTickShift); }

std::int64_t Switch::tick_at_or_after(Time t) const {
  return (t.count() + (std::int64_t{1} << kTickShift) - 1) >> kTickShift;
}

void Switch::push_event(Time when, const Packet& packet, EventKind kind, std::uint32_t port) {
  wheel_.push(tick_at_or_after(when), Event{packet, static_cast<std::uint16_t>(port), kind});
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
    const auto port = static_cast<std::uint32_t>(slot - ports_.size());
    ports_[port].in->packets.receive([&](const Packet& packet) {
      ++statistics_.packets;
      push_event(packet.when + spec_.latency, packet, EventKind::arrived, port);
    });
  });
  wheel_.run_until(tick_at_or_after(until), [this](const Event& event) { handle(event); });
}

void Switch::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::arrived:
      handle_arrival(event.packet, event.port);
      return;
    case EventKind::sum:
      sum_is_ready(event.packet);
      return;
    case EventKind::partial:
      send_partial(event.packet);
      return;
    case EventKind::acknowledge:
      flush_push_acknowledge(event.packet);
      return;
    case EventKind::timeout:
      handle_timeout(event.packet.entry);
      return;
  }
}

void Switch::handle_arrival(const Packet& packet, std::uint32_t port) {
  switch (packet.kind) {
    case PacketKind::partial_reply:
      handle_partial_reply(packet, port);
      return;
    case PacketKind::acknowledge:
      handle_acknowledge(packet, port);
      return;
    case PacketKind::read_reply:
      send(packet, port_to(packet.source, packet.line), hold(packet, port, 1));
      return;
    default:
      if (!begin_request(packet, port)) stall(packet, port);
  }
}

// To all members' ports, and up where there are more. A spine leaves out the leaf that the packet came from.
void Switch::multicast(const Packet& packet, std::uint32_t port) {
  const Group& group = group_of(packet);
  const std::uint32_t except = place_.spine ? port : kNoPort;
  const bool up = port < ports_down_ && !place_.spine && group.goes_up();
  std::uint32_t copies = up ? 1 : 0;
  for (const Branch& branch : group.below) copies += branch.port != except ? 1 : 0;
  WEFT_CHECK(copies > 0, "a multicast to nobody");
  if (packet.kind == PacketKind::multicast_write && port < ports_down_ && !place_.spine) {
    statistics_.multicast_bytes += packet.payload;
  }
  statistics_.added_bytes += std::int64_t{copies} * packet.payload;
  std::uint32_t place = kNoHold;
  if (port != kNoPort) {
    statistics_.added_bytes -= packet.payload;
    place = hold(packet, port, copies);
  }
  Packet copy = packet;
  if (packet.kind == PacketKind::multicast_write) copy.entry = packet.destination + 1U;  // in its acknowledgements, too
  if (up) send(copy, port_to(place_.first_gpu + place_.gpus, packet.line), place);
  for (std::size_t b = 0; b < group.below.size(); ++b) {
    const Branch& branch = group.below[b];
    if (branch.port == except) continue;
    if (!place_.spine) copy.destination = static_cast<std::uint16_t>(place_.first_gpu + branch.port);
    if (place_.folded) copy.line = group.image(packet.line, b);
    send(copy, branch.port, place);
  }
}

// The line of the multicast that another GPU sends while the one that stands for all sends this.
LineAddress Switch::Group::image(LineAddress line, std::size_t gpu) const {
  for (const MulticastImages& image : images) {
    if (line < image.first || line >= image.end) continue;
    return static_cast<LineAddress>(line + image.stride * static_cast<std::int64_t>(gpu));
  }
  return line;  // a flag
}

// A multicast write is acknowledged, to where it came from, when each branch has acknowledged as many.
void Switch::handle_acknowledge(const Packet& packet, std::uint32_t port) {
  if (packet.entry == 0) {  // of a write to one GPU
    send(packet, port_to(packet.source, packet.line), hold(packet, port, 1));
    return;
  }
  // They speak for several lines: those of one agent meet in one spine, whatever the lines.
  const std::uint32_t back = port_to(packet.source, packet.agent * place_.interleave);
  give_credit(port, packet.lane, VirtualChannel::response, now());
  const Group& group = groups_.at(packet.entry - 1);
  auto branches = static_cast<std::uint32_t>(group.below.size());
  if (place_.spine) {
    for (const Branch& branch : group.below) branches -= branch.port == back ? 1 : 0;
  } else if (back < ports_down_ && group.goes_up()) {
    ++branches;
  }
  if (packet.source >= acknowledged_.size()) acknowledged_.resize(packet.source + 1U);
  std::vector<std::uint32_t>& done = acknowledged_[packet.source];
  if (packet.agent >= done.size()) done.resize(packet.agent + 1, 0);
  std::uint32_t& copies = done[packet.agent];
  copies += packet.count;
  if (copies < branches) return;
  Packet combined = packet;
  combined.count = static_cast<std::uint8_t>(copies / branches);
  copies %= branches;
  send(combined, back, kNoHold);
}

void Switch::send(const Packet& packet, std::uint32_t port, std::uint32_t hold) {
  Time start;
  if (outputs_[port].submit(packet, now(), hold, start)) departed(hold, start);
}

std::uint32_t Switch::hold(const Packet& packet, std::uint32_t port, std::uint32_t copies) {
  std::uint32_t place = 0;
  if (free_holds_.empty()) {
    place = static_cast<std::uint32_t>(holds_.size());
    holds_.emplace_back();
  } else {
    place = free_holds_.back();
    free_holds_.pop_back();
  }
  holds_[place] = {static_cast<std::uint16_t>(port), packet.lane, virtual_channel(packet.kind), copies, Time(0)};
  return place;
}

void Switch::departed(std::uint32_t place, Time start) {
  if (place == kNoHold) return;
  Hold& held = holds_[place];
  held.last = later(held.last, start);
  if (--held.copies != 0) return;
  give_credit(held.port, held.lane, held.channel, held.last);
  free_holds_.push_back(place);
}

void Switch::give_credit(std::uint32_t port, std::uint8_t lane, VirtualChannel channel, Time when) {
  ports_[port].out->credits.send({when + link_latency_, lane, channel});
}

bool Switch::holds_packets() const {
  return holds_.size() != free_holds_.size() || (reducer_ != nullptr && reducer_->occupied() > 0) ||
         std::any_of(stalled_.begin(), stalled_.end(), [](const Stalled& s) { return s.waiting > 0; });
}

}  // namespace weft
