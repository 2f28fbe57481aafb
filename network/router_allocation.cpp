// Who leaves by a lane next, and what its leaving changes.
#include <bit>

#include "network/router.h"

namespace weft {

// Behind those of its queue, once its output is known.
void Router::enqueue(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.queue = queue_of(place_of(slot.queue), slot.output);
  Output& out = outputs_[slot.output];
  Queue& queue = queues_[slot.queue];
  const std::uint32_t waiting = out.waiting + 1;
  if (waiting > out.statistics.queue_high_water) out.statistics.queue_high_water = waiting;
  const Time soon = now() + kTick;
  // What most packets of a network that is not full find: nobody else wants the lane, and all is ready.
  if (waiting == 1 && queue.head == kNone && out.free < soon) {
    const Time credit = credits_[slot.credit].next(credit_times_);
    const Time from = later(credit, input_free_[lane_of(slot.queue)]);
    if (from < soon) {
      transmit(out, index, slot.queue, now(), from);
      return;
    }
  }
  out.waiting = waiting;
  slot.packet.when = now();  // only here: who copies the packet at once would wait for this store
  slot.next = kNone;
  if (queue.head != kNone) {
    slots_[queue.tail].next = index;
    queue.tail = index;
    return;
  }
  queue.head = queue.tail = index;
  request(slot.queue, slot);
  // An output that is busy is due when it gets free: most come while it is.
  if (out.free >= soon) {
    serve_at(slot.output, out.free);
  } else {
    serve(slot.output);
  }
}

void Router::request(std::uint32_t queue, const Slot& head) {
  queues_[queue].credit = head.credit;
  const std::uint32_t at = place_of(queue);
  requests_[head.output * words_ + at / 64] |= std::uint64_t{1} << (at % 64);
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
  const Time from = later(credits_[candidate.credit].next(credit_times_), input_free_[lane_of(queue)]);
  if (from >= soon) {
    grant.retry = earlier(grant.retry, from);  // Time::max() without a credit
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
  Grant grant{.queue = kNone, .from = Time(0), .retry = Time::max()};
  arbitrate_among(output, 0, grant);
  if (!giving_way_.empty() && grant.queue == kNone) arbitrate_among(output, 1, grant);
  return grant;
}

// Places of round robin from `start` on, once around, until `visit` says that it found one.
template <typename Wanted, typename Visit>
bool Router::scan(std::uint32_t start, Wanted wanted, Visit visit) const {
  const std::uint64_t behind = ~std::uint64_t{0} << (start % 64);
  std::uint32_t word = start / 64 == words_ ? 0 : start / 64;
  std::uint64_t bits = wanted(word) & behind;
  for (std::uint32_t step = 0;;) {
    for (; bits != 0; bits &= bits - 1) {
      if (visit(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)))) return true;
    }
    if (step++ == words_) return false;
    word = word + 1 == words_ ? 0 : word + 1;
    bits = step == words_ ? wanted(word) & ~behind : wanted(word);
  }
}

void Router::arbitrate_among(std::uint32_t output, std::uint32_t gives_way, Grant& grant) const {
  const Time soon = now() + kTick;
  Time oldest = Time::max();
  const auto wanted = [&](std::uint32_t word) {
    const std::uint64_t requests = requests_[output * words_ + word];
    if (giving_way_.empty()) return requests;
    return requests & (gives_way != 0 ? giving_way_[word] : ~giving_way_[word]);
  };
  const auto visit = [&](std::uint32_t at) { return consider(queue_of(at, output), soon, grant, oldest); };
  // Round robin goes on behind the one served last.
  const std::uint32_t start = place_of(outputs_[output].last[gives_way]) + 1;
  if (bundles_.empty()) {
    scan(start, wanted, visit);
    return;
  }
  // At a bundle's first place, those of all its lanes. Who was served last has had the bundle's turn.
  const auto turns = [&](std::uint32_t word) {
    std::uint64_t bits = wanted(word);
    for (const Bundle& bundle : bundles_) {
      bits &= ~bundle.places[word];
      if (word != bundle.first / 64) continue;
      std::uint64_t any = 0;
      for (std::uint32_t w = word; w < words_; ++w) any |= wanted(w) & bundle.places[w];
      if (any != 0) bits |= std::uint64_t{1} << (bundle.first % 64);
    }
    return bits;
  };
  scan(start, turns, [&](std::uint32_t at) {
    const std::uint32_t number = queues_[queue_of(at, output)].bundle;
    if (number == 0) return visit(at);
    const Bundle& bundle = bundles_[number - 1];
    return scan(
        bundle_last_[output * bundles_.size() + number - 1] + 1,
        [&](std::uint32_t word) { return wanted(word) & bundle.places[word]; }, visit);
  });
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

// The head of a queue goes; who comes behind it asks for its own lane.
void Router::send(std::uint32_t output, std::uint32_t queue, Time from) {
  Output& out = outputs_[output];
  Queue& in = queues_[queue];
  const std::uint32_t index = in.head;
  in.head = slots_[index].next;
  const std::uint32_t at = place_of(queue);
  requests_[output * words_ + at / 64] &= ~(std::uint64_t{1} << (at % 64));
  --out.waiting;
  transmit(out, index, queue, slots_[index].packet.when, from);
  if (in.head == kNone) return;
  const Slot& head = slots_[in.head];
  request(queue, head);
  if (head.output != output) {
    serve_at(head.output, later(input_free_[lane_of(queue)], outputs_[head.output].free));
  }
}

// A packet that no queue holds any more leaves; its slot is free behind it.
void Router::transmit(Output& out, std::uint32_t index, std::uint32_t queue, Time ready, Time from) {
  const Slot& slot = slots_[index];
  const LinkTiming::Serialisation& takes = out.timing->of(slot.packet);
  const Time idle = later(out.free, ready);
  const Time start = later(later(idle, from), now());
  const Time end = start + takes.time;
  out.statistics.stalled += start - idle;
  out.statistics.count(start, takes, slot.packet.payload, out.wires->load.get());
  out.free = end;
  Time& input = input_free_[lane_of(queue)];
  input = end;
  if (spec_.speedup > 1) [[unlikely]] {  // apart: a division takes longer than the rest of this function
    input = start + Time(takes.time.count() / spec_.speedup);
  }
  const Queue& in = queues_[queue];
  out.last[in.gives_way] = queue;
  if (in.bundle != 0) bundle_last_[slot.output * bundles_.size() + in.bundle - 1] = place_of(queue);
  credits_[slot.credit].take();
  if (in.credits != nullptr) [[likely]] {
    in.credits->send(in.place, in.place.when + start);
  }
  Packet& sent = out.wires->packets.send(slot.packet, start + takes.first + out.latency);
  sent.lane = out.lane;
  sent.vc_class = static_cast<std::uint8_t>(vc_of(slot.credit) / kVirtualChannels);
  free_slot(index);
}

}  // namespace weft
