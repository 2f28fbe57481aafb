#include "network/lane.h"

#include <algorithm>

namespace weft {

std::uint32_t flits(const LinkSpec& spec, const Packet& packet) {
  return spec.header_flits + (packet.payload + spec.flit_bytes - 1) / spec.flit_bytes;
}

void LaneStatistics::next_bin(Time start, TimeBins* load) {
  if (load != nullptr) count_open_bin(*load);
  if (start / kStatisticsPeriod != (bin_end - Time(1)) / kStatisticsPeriod) {
    busiest_before = busiest();
    busy_before_period = busy;
  }
  busy_before_bin = busy;
  bin_end = kShortestTimeBin * (start / kShortestTimeBin + 1);
}

LinkTiming::LinkTiming(const LinkSpec& spec, double factor) : spec_(spec) {
  const auto rate = Bandwidth(
      static_cast<std::int64_t>(static_cast<double>(spec.bandwidth.count()) * spec.framing_efficiency * factor));
  const std::uint32_t most = std::max(spec.max_payload_bytes, kMaxPacketLines * kLineBytes);
  for (std::uint32_t payload = 0; payload <= most; ++payload) {
    Packet packet;
    packet.payload = static_cast<std::uint16_t>(payload);
    const std::uint32_t bytes = flits(spec, packet) * spec.flit_bytes;
    by_payload_.push_back({transfer_time(Bytes(bytes), rate), bytes});
  }
}

}  // namespace weft
