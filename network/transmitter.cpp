#include "network/transmitter.h"

#include "sim/error.h"

namespace weft {

Transmitter::Transmitter(std::shared_ptr<const LinkTiming> timing, std::uint32_t lanes, LinkWires& out, bool passes_on)
    : timing_(std::move(timing)), lanes_(lanes), passes_on_(passes_on), out_(&out) {
  for (Lane& lane : lanes_) {
    for (CreditCounter& credits : lane.credits) credits = CreditCounter(timing_->spec().credits);
  }
}

void Transmitter::set_lane_timing(std::uint32_t lane, std::shared_ptr<const LinkTiming> timing) {
  lane_timing_.resize(lanes_.size(), timing_);
  lane_timing_[lane] = std::move(timing);
}

const LinkTiming& Transmitter::timing_of(std::uint32_t lane) const {
  return lane_timing_.empty() ? *timing_ : *lane_timing_[lane];
}

// The start of a transmission: in the gap that the other channel left, or behind all that is under way.
Time Transmitter::take_lane(Lane& lane, std::size_t channel, Time ready, Time credit, Time duration) {
  const Time possible = later(ready, credit);
  Gap& gap = lane.gap;
  if (const Time start = later(possible, gap.begin); gap.channel != channel && start + duration <= gap.end) {
    gap.begin = start + duration;
    return start;
  }
  const Time idle = later(ready, lane.free);
  const Time start = later(idle, credit);
  if (start > idle) {
    gap = {idle, start, channel};
    lane.statistics.stalled += start - idle;
  }
  lane.free = start + duration;
  return start;
}

Time Transmitter::transmit(std::uint32_t index, const Packet& packet, Time ready) {
  Lane& lane = lanes_[index];
  const LinkTiming& timing = timing_of(index);
  const auto channel = static_cast<std::size_t>(virtual_channel(packet.kind));
  CreditCounter& credits = lane.credits[channel];
  const LinkTiming::Serialisation& takes = timing.of(packet);
  const Time start = take_lane(lane, channel, ready, credits.next(credit_times_), takes.time);
  credits.take();
  lane.statistics.count(start, takes, packet.payload, out_->load.get());
  const Time arrival = start + (passes_on_ ? takes.first : takes.time) + timing.spec().latency;
  out_->packets.send(packet, arrival).vc_class = 0;
  return start;
}

bool Transmitter::submit(const Packet& packet, Time ready, std::uint32_t held_by, Time& start) {
  Lane& lane = lanes_[packet.lane];
  const auto channel = static_cast<std::size_t>(virtual_channel(packet.kind));
  if (lane.credits[channel].count() == 0 || !lane.queue[channel].empty()) {
    lane.queue[channel].push({packet, ready, held_by});
    ++waiting_;
    lane.statistics.queue_high_water = std::max(lane.statistics.queue_high_water, ++lane.queued);
    return false;
  }
  start = transmit(packet.lane, packet, ready);
  return true;
}

void Transmitter::receive_credit(const Credit& credit, std::vector<Departure>& departures) {
  Lane& lane = lanes_[credit.lane];
  const auto channel = static_cast<std::size_t>(credit.channel);
  CreditCounter& credits = lane.credits[channel];
  const std::uint32_t limit = timing_->spec().credits;
  WEFT_CHECK(credits.count() < limit, "more credits came back than were given");
  credits.put(credit.when, limit, credit_times_);
  Queue& queue = lane.queue[channel];
  if (queue.empty()) return;
  const Waiting& waiting = queue.pop();
  --waiting_;
  --lane.queued;
  departures.push_back({waiting.packet, waiting.held_by, transmit(credit.lane, waiting.packet, waiting.ready)});
}

}  // namespace weft
