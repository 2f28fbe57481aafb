#include "switch_reduce/aggregation_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace weft {

AggregationPool::AggregationPool(const AggregationSpec& spec, const std::vector<AggregationGroup>& groups,
                                 const std::vector<TreePlace>& places, std::uint32_t lanes)
    : spec_(spec), clock_(spec.adders.clock), adders_free_(std::size_t{lanes} * spec.adders.per_port) {
  std::uint32_t streams = 0;
  std::uint32_t widest = 1;  // window of a stream
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (places[g].contributors == 0) continue;
    streams += groups[g].streams;
    widest = std::max(widest, spec.window_of(groups[g].streams));
    words_ = std::max(words_, (places[g].contributors + 63) / 64);
  }
  per_stream_ = spec.slots / std::max(1U, streams);
  const std::uint32_t needed = spec.loss > 0 ? 2 * widest : 1;
  if (per_stream_ < needed) {
    throw InputError(
        "", "/network_reduce/slots",
        fmt::format("expected at least {} ({} for each of {} streams{}), got {}", std::uint64_t{needed} * streams,
                    needed, streams, spec.loss > 0 ? ": with losses, two windows" : "", spec.slots));
  }
  std::uint32_t first = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups_.push_back({.first_slot = first,
                       .contributors = places[g].contributors,
                       .lanes = spec.adders.lanes_of(groups[g].type),
                       .element_bytes = bytes_per_element(groups[g].type),
                       .root = !places[g].above.has_value()});
    if (places[g].contributors > 0) first += groups[g].streams * per_stream_;
  }
  slots_.resize(first);
  seen_.resize(std::size_t{first} * words_);
}

std::uint32_t AggregationPool::slot_of(const Packet& packet) const {
  return groups_[packet.destination].first_slot + packet.source * per_stream_ + packet.entry % per_stream_;
}

Contributed AggregationPool::contribute(const Packet& packet, std::uint32_t lane, Time now) {
  const Group& group = groups_[packet.destination];
  const std::uint32_t index = slot_of(packet);
  Slot& slot = slots_[index];
  std::uint64_t* seen = &seen_[std::size_t{index} * words_];
  if (slot.state != State::unused && packet.entry < slot.chunk) {
    ++statistics_.duplicates;
    ++statistics_.stale;
    return {.as = Contributed::As::dropped};
  }
  if (slot.state == State::unused || packet.entry > slot.chunk) {
    if (slot.state == State::gathering || slot.state == State::summed) {
      return {.as = Contributed::As::waiting, .slot = index};
    }
    slot = {.state = State::gathering,
            .chunk = packet.entry,
            .missing = group.contributors,
            .line = packet.line,
            .ready = now};
    std::fill_n(seen, words_, 0);
    statistics_.high_water = std::max(statistics_.high_water, ++in_use_);
  }
  std::uint64_t& word = seen[packet.agent / 64];
  const std::uint64_t bit = std::uint64_t{1} << (packet.agent % 64);
  if ((word & bit) != 0) return duplicate(slot, packet, index);
  word |= bit;
  WEFT_CHECK(slot.line == packet.line, "members of a group have different chunks of one number");
  add(slot, group, packet, lane, now);
  if (--slot.missing > 0) return {.as = Contributed::As::summed, .slot = index};
  slot.state = State::summed;
  statistics_.reduced_bytes += packet.payload;
  return {.as = Contributed::As::completed, .slot = index, .when = slot.ready};
}

Contributed AggregationPool::duplicate(const Slot& slot, const Packet& packet, std::uint32_t index) {
  ++statistics_.duplicates;
  if (slot.state == State::finished) return {.as = Contributed::As::asks_for_sum, .slot = index};
  const bool above = slot.state == State::summed && !groups_[packet.destination].root;
  return {.as = above ? Contributed::As::asks_above : Contributed::As::dropped, .slot = index, .when = slot.ready};
}

// The adder of the lane that is free first takes it, a clock for as many elements as it has lanes.
void AggregationPool::add(Slot& slot, const Group& group, const Packet& packet, std::uint32_t lane, Time now) {
  WEFT_CHECK(group.lanes > 0, "a sum of a type that the router does not add");
  const std::int64_t elements = packet.payload / group.element_bytes;
  const Time takes = clock_.edge((elements + group.lanes - 1) / group.lanes);
  const auto first = adders_free_.begin() + static_cast<std::ptrdiff_t>(lane) * spec_.adders.per_port;
  Time& adder = *std::min_element(first, first + spec_.adders.per_port);
  adder = std::max(adder, now) + takes;
  statistics_.adders_busy += takes;
  slot.ready = std::max(slot.ready, adder + spec_.latency);
}

std::optional<std::uint32_t> AggregationPool::finish(const Packet& sum) {
  const std::uint32_t index = slot_of(sum);
  Slot& slot = slots_[index];
  if (slot.state != State::summed || slot.chunk != sum.entry) return std::nullopt;
  slot.state = State::finished;
  --in_use_;
  return index;
}

void AggregationPool::count_stall(Time duration) {
  ++statistics_.stalled_packets;
  statistics_.stalled += duration;
}

}  // namespace weft
