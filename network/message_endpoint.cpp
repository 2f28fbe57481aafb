#include "network/message_endpoint.h"

#include "sim/error.h"

namespace weft {

MessageEndpoint::MessageEndpoint(MessageEndpointSpec spec) : spec_(std::move(spec)) {
  for (std::uint16_t g = 0; g < spec_.groups.size(); ++g) {
    first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
    for (std::uint16_t s = 0; s < spec_.groups[g].streams; ++s) {
      Stream& stream = streams_.emplace_back();
      stream.chunks.resize(64);
      stream.group = g;
      stream.number = s;
    }
  }
}

void MessageEndpoint::post(std::uint16_t group, std::uint16_t stream, LineAddress line, std::uint32_t agent,
                           std::uint16_t payload, Time now, std::vector<Sending>& out) {
  WEFT_CHECK(stream < spec_.groups.at(group).streams, "a chunk of a stream that the group does not have");
  Stream& at = streams_[first_stream_[group] + stream];
  if (at.posted - at.done == at.chunks.size()) grow(at);
  at.at(at.posted++) = {.line = line, .agent = agent, .payload = payload, .done = false, .sent = now};
  send_window(at, now, out);
}

void MessageEndpoint::grow(Stream& stream) {
  Stream larger = stream;
  larger.chunks.resize(2 * stream.chunks.size());
  for (std::uint32_t c = stream.done; c != stream.posted; ++c) larger.at(c) = stream.at(c);
  stream = std::move(larger);
}

void MessageEndpoint::send_window(Stream& stream, Time now, std::vector<Sending>& out) {
  const std::uint32_t window = spec_.groups[stream.group].window;
  while (stream.sent != stream.posted && stream.sent - stream.done < window) send(stream, stream.sent++, now, out);
}

void MessageEndpoint::send(Stream& stream, std::uint32_t chunk, Time now, std::vector<Sending>& out) {
  const AggregationTree::Member& place = spec_.groups[stream.group].place;
  Chunk& at = stream.at(chunk);
  at.sent = now;
  Packet packet;
  packet.kind = PacketKind::contribution;
  packet.line = at.line;
  packet.payload = at.payload;
  packet.entry = chunk;
  packet.source = stream.number;
  packet.destination = stream.group;
  packet.agent = place.place;
  out.push_back({packet, place.port});
  if (spec_.timeout == Time(0)) return;
  timers_.push_back({now + spec_.timeout, first_stream_[stream.group] + stream.number, chunk});
}

std::optional<std::uint32_t> MessageEndpoint::sum_came(const Packet& sum, Time now, std::vector<Sending>& out) {
  if (spec_.loss.lost(spec_.link, packets_++)) {
    ++statistics_.lost;
    return std::nullopt;
  }
  Stream& stream = streams_[first_stream_[sum.destination] + sum.source];
  if (sum.entry < stream.done || stream.at(sum.entry).done) {
    ++statistics_.duplicates;
    return std::nullopt;
  }
  WEFT_CHECK(sum.entry < stream.sent, "the sum of a chunk came to who has not contributed");
  ++statistics_.chunks;
  stream.at(sum.entry).done = true;
  const std::uint32_t agent = stream.at(sum.entry).agent;
  while (stream.done != stream.sent && stream.at(stream.done).done) ++stream.done;
  send_window(stream, now, out);
  return agent;
}

std::optional<Time> MessageEndpoint::next_timeout() const {
  if (first_timer_ == timers_.size()) return std::nullopt;
  return timers_[first_timer_].when;
}

void MessageEndpoint::send_again(Time now, std::vector<Sending>& out) {
  while (first_timer_ < timers_.size()) {
    const Timer timer = timers_[first_timer_];
    Stream& stream = streams_[timer.stream];
    const bool done = timer.chunk < stream.done || stream.at(timer.chunk).done;
    if (!done && timer.when > now) break;
    ++first_timer_;
    if (done) continue;
    ++statistics_.retransmissions;
    send(stream, timer.chunk, now, out);
  }
  if (first_timer_ * 2 < timers_.size()) return;
  timers_.erase(timers_.begin(), timers_.begin() + static_cast<std::ptrdiff_t>(first_timer_));
  first_timer_ = 0;
}

}  // namespace weft
