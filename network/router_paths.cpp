// Which lane a packet leaves by, of the ports that are as good as each other.
#include "network/lane_turn.h"
#include "network/router.h"

namespace weft {

namespace {
// A 32-bit mix of what ECMP hashes; the router's number keeps levels of a tree from choosing alike.
std::uint32_t path_hash(const Packet& packet, std::uint32_t node) {
  std::uint64_t x = (std::uint64_t{packet.source} << 48) ^ (std::uint64_t{packet.destination} << 32) ^ packet.line;
  x += std::uint64_t{node} * 0x9E3779B97F4A7C15ULL;  // splitmix64 (Steele, Lea, Flood, 2014)
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(x >> 32);
}

// A hash spread over [0, count).
std::uint32_t spread(std::uint32_t hash, std::uint32_t count) {
  return static_cast<std::uint32_t>((std::uint64_t{hash} * count) >> 32);
}
}  // namespace

// That of the place `start`, or the next one that works.
std::uint32_t Router::live_lane(std::uint32_t port, std::uint32_t start) const {
  const std::uint32_t first = first_lane_[port];
  const std::uint32_t lanes = first_lane_[port + 1] - first;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const std::uint32_t output = first + (start + i) % lanes;
    if (outputs_[output].timing != nullptr) return output;
  }
  return first;
}

std::uint32_t Router::least_waiting(const Hops& hops, std::uint32_t turn) const {
  std::uint32_t best = kNone;
  std::uint32_t least = kNone;
  const std::uint32_t start = spread(turn, hops.count);
  for (std::uint32_t i = 0; i < hops.count; ++i) {
    const std::uint32_t port = hops.port(static_cast<std::uint16_t>((start + i) % hops.count));
    for (std::uint32_t output = first_lane_[port]; output < first_lane_[port + 1]; ++output) {
      const Output& out = outputs_[output];
      if (out.timing == nullptr) continue;
      const std::uint32_t waiting = 2 * out.waiting + (out.free > now() ? 1 : 0);
      if (waiting >= least) continue;
      least = waiting;
      best = output;
    }
  }
  return best;
}

// As where packets leave their GPU, so that those which came by different lanes seldom meet.
std::uint32_t Router::lane_by_turns(std::uint32_t port, const Packet& packet) const {
  const std::uint32_t turn = lane_turn(packet.line);
  const std::uint32_t first = first_lane_[port];
  const std::uint32_t lanes = first_lane_[port + 1] - first;
  if (lanes == 1) return first;
  return all_lanes_work_ ? first + turn % lanes : live_lane(port, turn % lanes);
}

std::uint32_t Router::choose(const Hops& hops, const Packet& packet) {
  if (hops.count == 1) {
    const std::uint32_t port = hops.port(0);
    if (first_lane_[port + 1] - first_lane_[port] == 1) return first_lane_[port];
  }
  switch (choice_) {
    case PathChoice::deterministic:
      return lane_by_turns(hops.port(hops.preferred), packet);
    case PathChoice::ecmp: {
      const std::uint32_t index = spread(path_hash(packet, node_), hops.count);
      return lane_by_turns(hops.port(static_cast<std::uint16_t>(index)), packet);
    }
    case PathChoice::adaptive:
      return least_waiting(hops, path_hash(packet, node_));
    case PathChoice::spray:
      break;
  }
  ++turn_;
  if (hops.ports == nullptr && all_lanes_work_) {
    const std::uint32_t first = first_lane_[hops.first];
    return first + turn_ % (first_lane_[hops.first + hops.count] - first);
  }
  const std::uint32_t port = hops.port(static_cast<std::uint16_t>(turn_ % hops.count));
  const std::uint32_t lanes = first_lane_[port + 1] - first_lane_[port];
  return live_lane(port, spread(turn_ / hops.count * 0x9E3779B9U, lanes));
}

}  // namespace weft
