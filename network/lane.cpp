#include "network/lane.h"

namespace weft {

std::uint32_t flits(const LinkSpec& spec, const Packet& packet) {
  return spec.header_flits + (packet.payload + spec.flit_bytes - 1) / spec.flit_bytes;
}

LinkTiming::LinkTiming(const LinkSpec& spec, double factor) : spec_(spec) {
  const auto rate = Bandwidth(
      static_cast<std::int64_t>(static_cast<double>(spec.bandwidth.count()) * spec.framing_efficiency * factor));
  for (std::uint32_t payload = 0; payload <= spec.max_payload_bytes; ++payload) {
    Packet packet;
    packet.payload = static_cast<std::uint8_t>(payload);
    const std::uint32_t bytes = flits(spec, packet) * spec.flit_bytes;
    by_payload_.push_back({transfer_time(Bytes(bytes), rate), bytes});
  }
}

}  // namespace weft
