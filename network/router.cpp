#include "network/router.h"

#include <bit>
#include <limits>

#include "sim/error.h"
#include "sim/prefetch.h"

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
      passage_(spec.latency + kTick - Time(1)),
      routing_(&routing),
      ports_(std::move(ports)),
      trees_(std::move(trees)) {
  if (spec_.virtual_output_queues) {
    std::size_t outputs = 0;
    for (const RouterPort& port : ports_) outputs += port.lanes.size();
    output_shift_ = static_cast<std::uint32_t>(std::bit_width(outputs - 1));
    output_mask_ = (1U << output_shift_) - 1;
  }
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
      output.latency = timing != nullptr ? timing->spec().latency : Time(0);
      output.credits = timing != nullptr ? timing->spec().credits : 0;
      output.port = static_cast<std::uint16_t>(p);
      output.terminal = port.terminal;
      output.lane = static_cast<std::uint8_t>(lane);
      outputs_.push_back(output);
      credits_.insert(credits_.end(), std::size_t{1} << vc_shift_, CreditCounter(output.credits));
      for (std::uint32_t vc = 0; vc < 1U << vc_shift_; ++vc) {
        Queue queue;
        queue.port = static_cast<std::uint16_t>(p);
        queue.gives_way = port.terminal && routing.through_first() ? 1 : 0;
        queue.credits = &port.out->credits;
        queue.place = {.when = port.latency,
                       .lane = static_cast<std::uint8_t>(lane),
                       .channel = static_cast<VirtualChannel>(vc % kVirtualChannels),
                       .vc_class = static_cast<std::uint8_t>(vc / kVirtualChannels)};
        queues_.insert(queues_.end(), std::size_t{1} << output_shift_, queue);
      }
    }
  }
  first_lane_.push_back(static_cast<std::uint32_t>(outputs_.size()));
  first_internal_ = static_cast<std::uint32_t>(queues_.size());
  if (!trees_.places.empty()) queues_.resize(2 * queues_.size());
  const std::size_t places = queues_.size() >> output_shift_;
  input_free_.resize(places >> vc_shift_);
  if (trees_.aggregator) slot_waiters_.resize(trees_.aggregator->slots());
  words_ = static_cast<std::uint32_t>((places + 63) / 64);
  requests_.resize(outputs_.size() * words_);
  bundle_terminals();
  if (!routing.through_first()) return;
  giving_way_.resize(words_);
  for (std::uint32_t at = 0; at < places; ++at) {
    giving_way_[at / 64] |= std::uint64_t{queues_[queue_of(at, 0)].gives_way} << (at % 64);
  }
}

void Router::bundle_terminals() {
  if (spec_.arbitration != Arbitration::round_robin) return;
  for (std::uint32_t p = 0; p < ports_.size(); ++p) {
    if (!ports_[p].terminal || ports_[p].lanes.size() < 2) continue;
    Bundle bundle{place(first_lane_[p], 0), std::vector<std::uint64_t>(words_)};
    const std::uint32_t end = place(first_lane_[p + 1], 0);
    for (std::uint32_t at = bundle.first; at < end; ++at) bundle.places[at / 64] |= std::uint64_t{1} << (at % 64);
    bundles_.push_back(std::move(bundle));
    const auto number = static_cast<std::uint16_t>(bundles_.size());
    for (std::uint32_t queue = queue_of(bundles_.back().first, 0); place_of(queue) < end; ++queue) {
      queues_[queue].bundle = number & 0x7fff;
    }
  }
  for (std::size_t output = 0; output < outputs_.size(); ++output) {
    for (const Bundle& bundle : bundles_) bundle_last_.push_back(bundle.first);
  }
}

Time Router::next_activity() const {
  const std::int64_t tick = wheel_.next();
  return tick == std::numeric_limits<std::int64_t>::max() ? Time::max() : Time(tick << kTickShift);
}

void Router::advance(Time until) {
  const auto ports = static_cast<std::uint32_t>(ports_.size());
  inbox_.drain([&](std::uint32_t slot) { slot < ports ? receive_credits(slot) : receive_packets(slot - ports); });
  const auto handle = [this](Event event) {
    if ((event & kServe) == 0) {
      arrive(event);
      return;
    }
    const std::uint32_t output = event & ~kServe;
    if (outputs_[output].serve_at != wheel_.now()) return;  // an earlier one came since
    outputs_[output].serve_at = -1;
    serve(output);
  };
  const std::int64_t end = (until.count() + kTick.count() - 1) >> kTickShift;
  if (among_many()) {
    wheel_.announce_until(end, [this](Event event) {
      if ((event & kServe) != 0) return;
      prefetch_line(&slots_[event].packet);
      prefetch_line(&slots_[event].credit);
    });
  }
  wheel_.run_until(end, handle);
}

void Router::receive_credits(std::uint32_t port) {
  const std::uint32_t first = first_lane_[port];
  ports_[port].in->credits.receive([&](const Credit& credit) {
    const std::uint32_t output = first + credit.lane;
    const Output& out = outputs_[output];
    CreditCounter& counter = credits_[place(output, vc_index(credit.channel, credit.vc_class))];
    const std::uint32_t had = counter.count();
    WEFT_CHECK(had < out.credits, "more credits came back than were given");
    counter.put_at(now(), credit.when, out.credits, credit_times_);
    // Who had one already, in hand or announced, does not wait for this one: the output is due by itself.
    if (had == 0 && out.waiting > 0) serve_at(output, later(credit.when, out.free));
  });
}

void Router::receive_packets(std::uint32_t port) {
  const std::uint32_t first = first_lane_[port];
  ports_[port].in->packets.receive([&](const Packet& packet) {
    const std::uint32_t at = place(first + packet.lane, vc_index(virtual_channel(packet.kind), packet.vc_class));
    wheel_.push((packet.when + passage_).count() >> kTickShift, take_slot(packet, queue_of(at, 0)));
  });
}

std::uint32_t Router::take_slot(const Packet& packet, std::uint32_t queue) {
  if (free_slots_.empty()) [[unlikely]] {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  slots_[index].packet = packet;
  slots_[index].queue = queue;
  return index;
}

void Router::arrive(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (in_tree(slot.packet.kind)) [[unlikely]] {
    slot.packet.when = now();
    if (!taken_by_tree(index)) enqueue(index);
    return;
  }
  const Hops hops = routing_->next(node_, queues_[slot.queue].port, slot.packet);
  const std::uint32_t output = choose(hops, slot.packet);
  const std::uint32_t vc_class = outputs_[output].terminal ? 0 : std::min<std::uint32_t>(hops.vc_class, classes_ - 1);
  slot.output = output;
  slot.credit = place(output, vc_index(virtual_channel(slot.packet.kind), vc_class));
  enqueue(index);
}

std::vector<Router::Blocked> Router::blocked() const {
  std::vector<Blocked> all;
  for (std::uint32_t q = 0; q < first_internal_; ++q) {
    if (queues_[q].head == kNone) continue;
    const Slot& head = slots_[queues_[q].head];
    const Output& out = outputs_[head.output];
    all.push_back({.in_port = queues_[q].port,
                   .in_lane = queues_[q].place.lane,
                   .out_port = out.port,
                   .out_lane = out.lane,
                   .channel = queues_[q].place.channel,
                   .in_class = queues_[q].place.vc_class,
                   .out_class = static_cast<std::uint8_t>(vc_of(head.credit) / kVirtualChannels)});
  }
  return all;
}

}  // namespace weft
