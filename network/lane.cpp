#include "network/lane.h"

namespace weft {

std::uint32_t flits(const LinkSpec& spec, const Packet& packet) {
  return spec.header_flits + (packet.payload + spec.flit_bytes - 1) / spec.flit_bytes;
}

LinkTiming::LinkTiming(const LinkSpec& spec, double factor) : spec_(spec) {
  const auto rate = Bandwidth(
      static_cast<std::int64_t>(static_cast<double>(spec.bandwidth.count()) * spec.framing_efficiency * factor));
  const std::uint32_t most = spec.header_flits + (spec.max_payload_bytes + spec.flit_bytes - 1) / spec.flit_bytes;
  for (std::uint32_t n = 0; n <= most; ++n) {
    flit_time_.push_back(transfer_time(Bytes(std::int64_t{n} * spec.flit_bytes), rate));
  }
}

void LaneStatistics::count(Time start, Time duration, std::int64_t payload, std::int64_t wire) {
  busy += duration;
  payload_bytes += payload;
  wire_bytes += wire;
  ++packets;
  if (const auto now = static_cast<std::uint32_t>(start / kStatisticsPeriod); now != period) {
    period = now;
    busy_in_period = Time(0);
  }
  busy_in_period += duration;
  busiest = std::max(busiest, busy_in_period);
}

}  // namespace weft
