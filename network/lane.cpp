#include "network/lane.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {

void LaneStatistics::next_bin(Time start, TimeBins* load) {
  if (load != nullptr) count_open_bin(*load);
  if (start / kStatisticsPeriod != (bin_end_ - Time(1)) / kStatisticsPeriod) {
    busiest_before_ = busiest();
    busy_before_period_ = busy;
  }
  busy_before_bin_ = busy;
  bin_end_ = kShortestTimeBin * (start / kShortestTimeBin + 1);
}

LinkTiming::LinkTiming(const LinkSpec& spec, double factor) : spec_(spec) {
  const auto rate = Bandwidth(
      static_cast<std::int64_t>(static_cast<double>(spec.bandwidth.count()) * spec.framing_efficiency * factor));
  const auto serialisation = [&](std::uint32_t bytes) {
    const Time time = transfer_time(Bytes(bytes), rate);
    return Serialisation{time, Time(std::llround(static_cast<double>(time.count()) / spec.train)), bytes};
  };
  const std::uint32_t most = std::max(spec.max_payload_bytes, kMaxPacketLines * kLineBytes);
  for (std::uint32_t payload = 0; payload <= most; ++payload) {
    const std::uint32_t flits = spec.header_flits + (payload + spec.flit_bytes - 1) / spec.flit_bytes;
    const std::uint32_t bytes = flits * spec.flit_bytes;
    by_payload_.push_back(serialisation(bytes));
  }
  for (std::uint32_t writes = 0; writes <= std::numeric_limits<decltype(Packet::count)>::max(); ++writes) {
    const auto bytes = static_cast<std::uint32_t>(std::lround(writes * spec.acknowledge_flits * spec.flit_bytes));
    by_writes_.push_back(serialisation(bytes));
  }
}

}  // namespace weft
