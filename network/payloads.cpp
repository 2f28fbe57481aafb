#include "network/payloads.h"

#include "sim/error.h"

namespace weft {

std::size_t Payloads::Hash::operator()(const Key& key) const {
  const std::uint64_t mixed = (key.ends * 0x9E3779B97F4A7C15U ^ key.what) * 0xBF58476D1CE4E5B9U;
  return mixed ^ (mixed >> 32U);
}

// Of a multicast write, a copy has the GPU for its destination where the original has the group.
Payloads::Key Payloads::key_of(const Packet& packet, LineAddress line) {
  const std::uint64_t destination = packet.kind == PacketKind::multicast_write ? 0 : packet.destination;
  return {static_cast<std::uint64_t>(packet.kind) << 32U | std::uint64_t{packet.source} << 16U | destination,
          std::uint64_t{packet.agent} << 32U | line};
}

void Payloads::put(const Packet& packet, LineAddress line, const LineValues* values) {
  const std::uint32_t readers = packet.kind == PacketKind::multicast_write ? group_members_.at(packet.destination) : 1;
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = payloads_.try_emplace(key_of(packet, line));
  WEFT_CHECK(fresh, "a packet whose values are taken for those of another one");
  at->second.readers = readers;
  at->second.filled = values != nullptr;
  if (values != nullptr) at->second.values = *values;
}

void Payloads::fill(const Packet& packet, LineAddress line, const LineValues& values) {
  const std::lock_guard lock(mutex_);
  const auto at = payloads_.find(key_of(packet, line));
  WEFT_CHECK(at != payloads_.end() && !at->second.filled, "values of a packet that has them, or is not there");
  for (LineValues* into : at->second.waiting) *into = values;
  at->second.filled = true;
  at->second.values = values;
  if (at->second.readers == 0) payloads_.erase(at);
}

void Payloads::take(const Packet& packet, LineAddress line, LineValues& into) {
  const std::lock_guard lock(mutex_);
  const auto at = payloads_.find(key_of(packet, line));
  WEFT_CHECK(at != payloads_.end() && at->second.readers > 0, "a packet came without its values");
  Payload& payload = at->second;
  --payload.readers;
  if (!payload.filled) {
    payload.waiting.push_back(&into);
    return;
  }
  into = payload.values;
  if (payload.readers == 0) payloads_.erase(at);
}

LineValues Payloads::take(const Packet& packet, LineAddress line) {
  const std::lock_guard lock(mutex_);
  const auto at = payloads_.find(key_of(packet, line));
  WEFT_CHECK(at != payloads_.end() && at->second.filled, "a packet came without its values");
  const LineValues values = at->second.values;
  payloads_.erase(at);
  return values;
}

}  // namespace weft
