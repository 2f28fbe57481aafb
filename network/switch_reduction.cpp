// What a reducing switch does: sums that are pulled, sums that are pushed, and requests that wait for an entry.
#include <algorithm>

#include "network/switch.h"
#include "sim/error.h"

namespace weft {

namespace {
// Which switch's entry a reply is for: of the leaf of who asked, of the spine, of another leaf. In the entry's number.
constexpr std::uint32_t kLevelShift = 30;
constexpr std::uint32_t kEntryMask = (1U << kLevelShift) - 1;

// Acknowledgements of pushes are collected as those of a GPU's writes are (gpu_model/gpu_memory.cpp).
constexpr std::uint32_t kCollectedAcknowledges = 8;
constexpr Time kAcknowledgeTimer = nanoseconds(60);  // about 96 cycles of a GPU

// Spreads lines over ports and GPUs, whatever lines come here (Fibonacci hashing).
std::uint32_t spread(LineAddress line, std::uint32_t places) {
  return static_cast<std::uint32_t>(std::uint64_t{line * 0x9E3779B1U} * places >> 32);
}
}  // namespace

std::uint32_t Switch::level(const Packet& packet) const {
  if (place_.spine) return 1;
  return is_below(packet.source) ? 0 : 2;
}

// False: it must wait for an entry, or behind one that does.
bool Switch::begin_request(const Packet& packet, std::uint32_t port) {
  const Stalled& stalled = stalled_[link(port, packet.lane)];
  if (stalled.waiting > 0) {
    if (reducer_->arbitration() == TableArbitration::fifo) return false;  // nothing overtakes
    const auto group = std::size_t{packet.destination};
    if (packet.kind == PacketKind::multicast_read && group < stalled.queues.size() && !stalled.queues[group].empty()) {
      return false;
    }
  }
  switch (packet.kind) {
    case PacketKind::multicast_read:
      return start_reduction(packet, port);
    case PacketKind::push:
      handle_push(packet, port);
      return true;
    case PacketKind::multicast_write:
    case PacketKind::multicast_flag:
    case PacketKind::multicast_sum:
      multicast(packet, port);
      return true;
    default:
      send(packet, port_to(packet.destination, packet.line), hold(packet, port, 1));
      return true;
  }
}

void Switch::stall(const Packet& packet, std::uint32_t port) {
  Stalled& stalled = stalled_[link(port, packet.lane)];
  const std::size_t queue = reducer_->arbitration() == TableArbitration::fifo ? 0 : packet.destination;
  if (queue >= stalled.queues.size()) stalled.queues.resize(queue + 1);
  stalled.queues[queue].push_back(packet);
  if (stalled.waiting++ == 0) stalled.since = now();
}

// An entry of the port's table is free: the queues take turns until none gets one.
void Switch::resume_stalled(std::uint32_t port, std::uint8_t lane) {
  Stalled& stalled = stalled_[link(port, lane)];
  const bool fifo = reducer_->arbitration() == TableArbitration::fifo;
  const auto queues = static_cast<std::uint32_t>(stalled.queues.size());
  for (std::uint32_t refused = 0; stalled.waiting > 0 && refused < queues;) {
    std::deque<Packet>& queue = stalled.queues[stalled.turn];
    stalled.turn = (stalled.turn + 1) % queues;
    if (queue.empty()) {
      ++refused;
      continue;
    }
    const Packet packet = queue.front();
    const std::uint32_t waiting = stalled.waiting;
    stalled.waiting = 0;  // it is at the head: nothing to wait behind
    const bool begun =
        packet.kind == PacketKind::multicast_read ? start_reduction(packet, port) : begin_request(packet, port);
    stalled.waiting = waiting;
    if (begun) {
      queue.pop_front();
      --stalled.waiting;
      refused = 0;
    } else if (fifo) {
      return;
    } else {
      ++refused;
    }
    if (stalled.waiting == 0) reducer_->count_stall(link(port, lane), now() - stalled.since);
  }
}

bool Switch::start_reduction(const Packet& packet, std::uint32_t port) {
  WEFT_CHECK(reducer_ != nullptr, "a multicast read reached a switch that does not reduce");
  const Group& group = group_of(packet);
  const std::uint32_t here = level(packet);
  auto contributions = static_cast<std::uint32_t>(here == 0 ? group.gpus.size() : group.gpus_below);
  if (place_.spine) {
    for (const Branch& branch : group.below) contributions -= branch.port == port ? branch.gpus : 0;
  }
  const std::optional<std::uint32_t> entry =
      reducer_->open(link(port, packet.lane), packet, contributions, group.type, now());
  Packet copy = packet;
  if (entry) {
    copy.entry = here << kLevelShift | *entry;
  } else {
    if (here == 0) return false;
    reducer_->count_refused();
  }
  multicast(copy, port);
  return true;
}

void Switch::handle_partial_reply(const Packet& packet, std::uint32_t port) {
  if (packet.entry >> kLevelShift != level(packet)) {
    reducer_->count_wasted();
    send(packet, port_to(packet.source, packet.line), hold(packet, port, 1));
    return;
  }
  give_credit(port, packet.lane, VirtualChannel::response, now());
  statistics_.added_bytes -= packet.payload;
  const std::optional<Time> ready = reducer_->add(packet.entry & kEntryMask, packet, now());
  if (ready) push_event(*ready, packet, EventKind::sum);
}

// The sum of an entry leaves: `last` is the last packet that came to it.
void Switch::sum_is_ready(const Packet& last) {
  Packet sum = reducer_->close(last.entry & kEntryMask, now());
  sum.payload = last.payload;
  if (last.kind == PacketKind::push) {
    const Group& group = group_of(sum);
    if (!place_.spine && group.goes_up()) {
      send_partial(sum);
      return;
    }
    sum.kind = PacketKind::multicast_sum;
    multicast(sum, kNoPort);
    return;
  }
  const bool answers = level(sum) == 0;
  sum.kind = answers ? PacketKind::read_reply : PacketKind::partial_reply;
  if (!answers) sum.destination = last.destination;
  statistics_.added_bytes += sum.payload;
  const std::uint32_t port = port_to(sum.source, sum.line);
  send(sum, port, kNoHold);
  if (answers) resume_stalled(port, sum.lane);
}

void Switch::handle_push(const Packet& packet, std::uint32_t port) {
  WEFT_CHECK(reducer_ != nullptr, "a push reached a switch that does not reduce");
  const Group& group = group_of(packet);
  give_credit(port, packet.lane, VirtualChannel::request, now());
  statistics_.added_bytes -= packet.payload;
  if (!place_.spine) acknowledge_push(packet);
  const std::uint32_t table = link(spread(packet.line, static_cast<std::uint32_t>(ports_.size())), packet.lane);
  const Pushed pushed = reducer_->push(table, packet, group.gpus_below, group.type, now());
  if (pushed.evicted) push_event(pushed.evicted_at, *pushed.evicted, EventKind::partial);
  if (!pushed.entry) {
    reducer_->count_wasted();
    send_partial(packet);
    return;
  }
  if (pushed.ready) {
    Packet last = packet;
    last.entry = *pushed.entry;
    push_event(*pushed.ready, last, EventKind::sum);
  }
  arm_timeout(table);
}

// What is not the whole sum goes to the next level, and from the last one to the home GPU's memory.
void Switch::send_partial(Packet packet) {
  const Group& group = group_of(packet);
  statistics_.added_bytes += packet.payload;
  if (!place_.spine && group.goes_up()) {
    send(packet, port_to(place_.first_gpu + place_.gpus, packet.line), kNoHold);
    return;
  }
  const auto members = static_cast<std::uint32_t>(group.gpus.size());
  packet.kind = PacketKind::partial_sum;
  packet.source = packet.destination;
  packet.destination =
      group.home ? static_cast<std::uint16_t>(group.home->value) : group.gpus[spread(packet.line, members)];
  packet.agent = members;
  send(packet, port_to(packet.destination, packet.line), kNoHold);
}

// The switch answers for what it has taken.
void Switch::acknowledge_push(const Packet& packet) {
  std::vector<PushAcknowledge>& agents = push_acknowledges_[link(port_to(packet.source, packet.line), packet.lane)];
  if (packet.agent >= agents.size()) agents.resize(packet.agent + 1);
  PushAcknowledge& collected = agents[packet.agent];
  ++collected.count;
  Packet done = packet;
  if (collected.count == kCollectedAcknowledges) {
    flush_push_acknowledge(done);
  } else if (!collected.timer_runs) {
    collected.timer_runs = true;
    done.count = 0;
    push_event(now() + kAcknowledgeTimer, done, EventKind::acknowledge);
  }
}

void Switch::flush_push_acknowledge(const Packet& packet) {
  const std::uint32_t port = port_to(packet.source, packet.line);
  PushAcknowledge& collected = push_acknowledges_[link(port, packet.lane)][packet.agent];
  if (packet.count == 0) collected.timer_runs = false;
  if (collected.count == 0) return;
  Packet done = packet;
  done.kind = PacketKind::acknowledge;
  done.destination = packet.source;
  done.entry = 0;
  done.payload = 0;
  done.count = collected.count;
  collected.count = 0;
  send(done, port, kNoHold);
}

void Switch::arm_timeout(std::uint32_t table) {
  const std::optional<Time> due = reducer_->next_timeout(table);
  if (!due || timeout_armed_[table]) return;
  timeout_armed_[table] = true;
  Packet which;
  which.entry = table;
  push_event(later(*due, now()), which, EventKind::timeout);
}

void Switch::handle_timeout(std::uint32_t table) {
  timeout_armed_[table] = false;
  while (const std::optional<Packet> late = reducer_->take_timed_out(table, now())) send_partial(*late);
  arm_timeout(table);
}

}  // namespace weft
