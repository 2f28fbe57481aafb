#include "network/router.h"

#include <bit>
#include <limits>

#include "sim/error.h"

namespace weft {

namespace {
std::uint32_t vc_index(VirtualChannel channel, std::uint32_t vc_class) {
  return vc_class * static_cast<std::uint32_t>(kVirtualChannels) + static_cast<std::uint32_t>(channel);
}

}  // namespace

Router::Router(const SwitchSpec& spec, PathChoice choice, std::uint32_t node, const Routing& routing,
               std::vector<RouterPort> ports, std::uint32_t vc_classes, RouterTrees trees)
    : spec_(spec),
      choice_(choice),
      node_(node),
      vc_shift_(static_cast<std::uint32_t>(std::bit_width(vc_classes * kVirtualChannels - 1))),
      classes_(vc_classes),
      routing_(&routing),
      ports_(std::move(ports)),
      trees_(std::move(trees)) {
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    const RouterPort& port = ports_[p];
    first_lane_.push_back(static_cast<std::uint32_t>(outputs_.size()));
    port.in->credits.announce_to(inbox_, p);
    port.in->packets.announce_to(inbox_, static_cast<std::uint32_t>(ports_.size()) + p);
    for (std::size_t lane = 0; lane < port.lanes.size(); ++lane) {
      const LinkTiming* timing = port.lanes[lane].get();
      all_lanes_work_ = all_lanes_work_ && timing != nullptr;
      Output output;
      output.timing = timing;
      output.wires = port.out;
      output.port = static_cast<std::uint16_t>(p);
      output.terminal = port.terminal;
      output.lane = static_cast<std::uint8_t>(lane);
      outputs_.push_back(output);
      credits_.insert(credits_.end(), std::size_t{1} << vc_shift_,
                      CreditCounter(timing != nullptr ? timing->spec().credits : 0));
      for (std::uint32_t vc = 0; vc < 1U << vc_shift_; ++vc) {
        Queue queue;
        queue.port = static_cast<std::uint16_t>(p);
        queue.lane = static_cast<std::uint8_t>(lane);
        queue.vc = static_cast<std::uint8_t>(vc);
        queue.credits = &port.out->credits;
        queue.latency = port.latency;
        queues_.push_back(queue);
      }
    }
  }
  first_lane_.push_back(static_cast<std::uint32_t>(outputs_.size()));
  first_internal_ = static_cast<std::uint32_t>(queues_.size());
  if (!trees_.places.empty()) queues_.resize(2 * queues_.size());
  input_free_.resize(queues_.size() >> vc_shift_);
  if (trees_.aggregator) slot_waiters_.resize(trees_.aggregator->slots());
  words_ = static_cast<std::uint32_t>((queues_.size() + 63) / 64);
  requests_.resize(outputs_.size() * words_);
}

Time Router::next_activity() const {
  const std::int64_t tick = wheel_.next();
  return tick == std::numeric_limits<std::int64_t>::max() ? Time::max() : Time(tick << kTickShift);
}

void Router::advance(Time until) {
  const auto ports = static_cast<std::uint32_t>(ports_.size());
  inbox_.drain([&](std::uint32_t slot) { slot < ports ? receive_credits(slot) : receive_packets(slot - ports); });
  wheel_.run_until((until.count() + kTick.count() - 1) >> kTickShift, [this](Event event) {
    if ((event & kServe) == 0) {
      arrive(event);
      return;
    }
    const std::uint32_t output = event & ~kServe;
    if (outputs_[output].serve_at != wheel_.now()) return;  // an earlier one came since
    outputs_[output].serve_at = -1;
    serve(output);
  });
}

void Router::receive_credits(std::uint32_t port) {
  ports_[port].in->credits.receive([&](const Credit& credit) {
    const std::uint32_t output = first_lane_[port] + credit.lane;
    Output& out = outputs_[output];
    CreditCounter& counter = credits_[place(output, vc_index(credit.channel, credit.vc_class))];
    const std::uint32_t limit = out.timing->spec().credits;
    WEFT_CHECK(counter.count() < limit, "more credits came back than were given");
    // Who had one already, in hand or announced, does not wait for this one: the output is due by itself.
    const bool awaited = counter.count() == 0 && out.waiting > 0;
    counter.put_at(now(), credit.when, limit, credit_times_);
    if (awaited) serve_at(output, std::max(credit.when, out.free));
  });
}

void Router::receive_packets(std::uint32_t port) {
  ports_[port].in->packets.receive([&](const Packet& packet) {
    const std::uint32_t index = take_slot(
        packet, place(first_lane_[port] + packet.lane, vc_index(virtual_channel(packet.kind), packet.vc_class)));
    wheel_.push((packet.when.count() + spec_.latency.count() + kTick.count() - 1) >> kTickShift, index);
  });
}

std::uint32_t Router::take_slot(const Packet& packet, std::uint32_t queue) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  slots_[index].packet = packet;
  slots_[index].queue = queue;
  ++held_;
  return index;
}

void Router::arrive(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.packet.when = now();
  if (in_tree(slot.packet.kind)) [[unlikely]] {
    if (!taken_by_tree(index)) enqueue(index);
    return;
  }
  const Hops hops = routing_->next(node_, queues_[slot.queue].port, slot.packet);
  slot.output = choose(hops, slot.packet);
  const Output& out = outputs_[slot.output];
  const std::uint32_t vc_class = out.terminal ? 0 : std::min<std::uint32_t>(hops.vc_class, classes_ - 1);
  slot.vc = vc_index(virtual_channel(slot.packet.kind), vc_class);
  enqueue(index);
}

// Behind those of its queue, which knows its output.
void Router::enqueue(std::uint32_t index) {
  Slot& slot = slots_[index];
  Output& out = outputs_[slot.output];
  slot.next = kNone;
  ++out.waiting;
  if (out.waiting > out.statistics.queue_high_water) out.statistics.queue_high_water = out.waiting;
  Queue& queue = queues_[slot.queue];
  if (queue.head != kNone) {
    slots_[queue.tail].next = index;
    queue.tail = index;
    return;
  }
  queue.head = queue.tail = index;
  if (out.waiting == 1 && send_at_once(index)) return;
  request(slot.queue, slot);
  // An output that is busy is due when it gets free: most come while it is.
  if (out.free >= now() + kTick) {
    serve_at(slot.output, out.free);
  } else {
    serve(slot.output);
  }
}

void Router::request(std::uint32_t queue, const Slot& head) {
  queues_[queue].credit = place(head.output, head.vc);
  requests_[head.output * words_ + queue / 64] |= std::uint64_t{1} << (queue % 64);
}

// What most packets of a network that is not full find: nobody else wants the lane, and all is ready.
bool Router::send_at_once(std::uint32_t index) {
  const Slot& slot = slots_[index];
  const Time soon = now() + kTick;
  if (outputs_[slot.output].free >= soon) return false;
  const Time credit = credits_[place(slot.output, slot.vc)].next(credit_times_);
  const Time from = std::max(credit, input_free_[lane_of(slot.queue)]);
  if (from >= soon) return false;
  send(slot.output, slot.queue, from);
  return true;
}

void Router::serve_at(std::uint32_t output, Time when) {
  // At the tick before `when` at the latest: the lane's own times are exact, so no time is lost to ticks.
  const std::int64_t tick = std::max(wheel_.now(), when.count() >> kTickShift);
  std::int64_t& pending = outputs_[output].serve_at;
  if (pending >= wheel_.now() && pending <= tick) return;
  pending = tick;
  wheel_.push(tick, kServe | output);
}

// Whether the grant is final.
bool Router::consider(std::uint32_t queue, Time soon, Grant& grant, Time& oldest) const {
  const Queue& candidate = queues_[queue];
  const Time from = std::max(credits_[candidate.credit].next(credit_times_), input_free_[lane_of(queue)]);
  if (from >= soon) {
    grant.retry = std::min(grant.retry, from);  // Time::max() without a credit
    return false;
  }
  if (spec_.arbitration == Arbitration::round_robin) {
    grant.queue = queue;
    grant.from = from;
    return true;
  }
  if (const Time age = slots_[candidate.head].packet.when; age < oldest) {
    oldest = age;
    grant.queue = queue;
    grant.from = from;
  }
  return false;
}

Router::Grant Router::arbitrate(std::uint32_t output) const {
  const Time soon = now() + kTick;
  Grant grant{.queue = kNone, .from = Time(0), .retry = Time::max()};
  Time oldest = Time::max();
  const std::uint64_t* requests = &requests_[output * words_];
  const std::uint32_t start = outputs_[output].last + 1;  // round robin goes on behind the one served last
  const std::uint64_t behind = ~std::uint64_t{0} << (start % 64);
  std::uint32_t word = start / 64 == words_ ? 0 : start / 64;
  std::uint64_t bits = requests[word] & behind;
  for (std::uint32_t step = 0;;) {
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t queue = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (consider(queue, soon, grant, oldest)) return grant;
    }
    if (step++ == words_) return grant;
    word = word + 1 == words_ ? 0 : word + 1;
    bits = step == words_ ? requests[word] & ~behind : requests[word];
  }
}

void Router::serve(std::uint32_t output) {
  Output& out = outputs_[output];
  if (out.free >= now() + kTick) {
    serve_at(output, out.free);
    return;
  }
  const Grant grant = arbitrate(output);
  if (grant.queue != kNone) {
    send(output, grant.queue, grant.from);
    if (out.waiting > 0) serve_at(output, out.free);
  } else if (grant.retry != Time::max()) {
    serve_at(output, grant.retry);
  }
}

void Router::send(std::uint32_t output, std::uint32_t queue, Time from) {
  Output& out = outputs_[output];
  Queue& in = queues_[queue];
  const LinkTiming& timing = *out.timing;
  const std::uint32_t index = in.head;
  const Slot& slot = slots_[index];
  const LinkTiming::Serialisation& takes = timing.of(slot.packet);
  const Time idle = std::max(out.free, slot.packet.when);
  const Time start = std::max(std::max(idle, from), now());
  const Time end = start + takes.time;
  out.statistics.stalled += start - idle;
  out.statistics.count(start, takes, slot.packet.payload, out.wires->load.get());
  out.free = end;
  Time& input = input_free_[lane_of(queue)];
  input = end;
  if (spec_.speedup > 1) [[unlikely]] {  // apart: a division takes longer than the rest of this function
    input = start + Time(takes.time.count() / spec_.speedup);
  }
  credits_[place(output, slot.vc)].take();
  --out.waiting;
  --held_;

  if (in.credits != nullptr) [[likely]] {
    in.credits->send({start + in.latency, in.lane, static_cast<VirtualChannel>(in.vc % kVirtualChannels),
                      static_cast<std::uint8_t>(in.vc / kVirtualChannels)});
  }
  Packet& sent = out.wires->packets.send(slot.packet);
  sent.when = start + takes.first + timing.spec().latency;
  sent.lane = out.lane;
  sent.vc_class = static_cast<std::uint8_t>(slot.vc / kVirtualChannels);

  requests_[output * words_ + queue / 64] &= ~(std::uint64_t{1} << (queue % 64));
  out.last = queue;
  in.head = slot.next;
  free_slots_.push_back(index);
  if (in.head == kNone) return;
  const Slot& head = slots_[in.head];
  request(queue, head);
  if (head.output != output) serve_at(head.output, std::max(input, outputs_[head.output].free));
}

std::vector<Router::Blocked> Router::blocked() const {
  std::vector<Blocked> all;
  for (std::uint32_t q = 0; q < first_internal_; ++q) {
    if (queues_[q].head == kNone) continue;
    const Slot& head = slots_[queues_[q].head];
    const Output& out = outputs_[head.output];
    all.push_back({.in_port = queues_[q].port,
                   .in_lane = queues_[q].lane,
                   .out_port = out.port,
                   .out_lane = out.lane,
                   .channel = static_cast<VirtualChannel>(q % kVirtualChannels),
                   .in_class = static_cast<std::uint8_t>(queues_[q].vc / kVirtualChannels),
                   .out_class = static_cast<std::uint8_t>(head.vc / kVirtualChannels)});
  }
  return all;
}

}  // namespace weft
