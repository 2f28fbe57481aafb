#include "network/transmitter.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

std::uint32_t flits(const LinkSpec& spec, const Packet& packet) {
  return spec.header_flits + (packet.payload + spec.flit_bytes - 1) / spec.flit_bytes;
}

Transmitter::Transmitter(const LinkSpec& spec, std::uint32_t lanes, LinkWires& out)
    : spec_(spec), lanes_(lanes), out_(&out) {
  const auto rate =
      Bandwidth(static_cast<std::int64_t>(static_cast<double>(spec.bandwidth.count()) * spec.framing_efficiency));
  const std::uint32_t most = spec.header_flits + (kMaxPacketLines * kLineBytes + spec.flit_bytes - 1) / spec.flit_bytes;
  for (std::uint32_t n = 0; n <= most; ++n) {
    flit_time_.push_back(transfer_time(Bytes(std::int64_t{n} * spec.flit_bytes), rate));
  }
  for (Lane& lane : lanes_) {
    for (CreditRing& ring : lane.credits) {
      ring.usable_from.assign(spec.credits, Time(0));
      ring.count = spec.credits;
    }
  }
}

namespace {
void count(LaneStatistics& statistics, Time start, Time duration, std::int64_t payload, std::int64_t wire) {
  statistics.busy += duration;
  statistics.payload_bytes += payload;
  statistics.wire_bytes += wire;
  ++statistics.packets;
  if (const std::int64_t period = start / kStatisticsPeriod; period != statistics.period) {
    statistics.period = period;
    statistics.busy_in_period = Time(0);
  }
  statistics.busy_in_period += duration;
  statistics.busiest = std::max(statistics.busiest, statistics.busy_in_period);
}
}  // namespace

// The start of a transmission: in the gap that the other channel left, or behind all that is under way.
Time Transmitter::take_lane(Lane& lane, std::size_t channel, Time ready, Time credit, Time duration) {
  const Time possible = std::max(ready, credit);
  Gap& gap = lane.gap;
  if (const Time start = std::max(possible, gap.begin); gap.channel != channel && start + duration <= gap.end) {
    gap.begin = start + duration;
    return start;
  }
  const Time idle = std::max(ready, lane.free);
  const Time start = std::max(idle, credit);
  if (start > idle) gap = {idle, start, channel};
  lane.free = start + duration;
  return start;
}

Time Transmitter::transmit(Lane& lane, const Packet& packet, Time ready) {
  const auto channel = static_cast<std::size_t>(virtual_channel(packet.kind));
  CreditRing& credits = lane.credits[channel];
  const std::uint32_t flit_count = flits(spec_, packet);
  const Time duration = flit_time_[flit_count];
  const Time start = take_lane(lane, channel, ready, credits.usable_from[credits.first], duration);
  credits.first = credits.first + 1 == spec_.credits ? 0 : credits.first + 1;
  --credits.count;
  count(lane.statistics, start, duration, packet.payload, std::int64_t{flit_count} * spec_.flit_bytes);
  Packet sent = packet;
  sent.when = start + duration + spec_.latency;
  out_->packets.send(sent);
  return start;
}

bool Transmitter::submit(const Packet& packet, Time ready, std::uint32_t held_by, Time& start) {
  Lane& lane = lanes_[packet.lane];
  const auto channel = static_cast<std::size_t>(virtual_channel(packet.kind));
  if (lane.credits[channel].count == 0 || !lane.queue[channel].empty()) {
    lane.queue[channel].push_back({packet, ready, held_by});
    ++waiting_;
    return false;
  }
  start = transmit(lane, packet, ready);
  return true;
}

void Transmitter::receive_credit(const Credit& credit, std::vector<Departure>& departures) {
  Lane& lane = lanes_[credit.lane];
  const auto channel = static_cast<std::size_t>(credit.channel);
  CreditRing& ring = lane.credits[channel];
  WEFT_CHECK(ring.count < spec_.credits, "more credits came back than were given");
  ring.usable_from[(ring.first + ring.count) % spec_.credits] = credit.when;
  ++ring.count;
  if (auto& queue = lane.queue[channel]; !queue.empty()) {
    const Waiting waiting = queue.front();
    queue.pop_front();
    --waiting_;
    departures.push_back({waiting.packet, waiting.held_by, transmit(lane, waiting.packet, waiting.ready)});
  }
}

}  // namespace weft
