#include "switch_reduce/reduction_table.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {
constexpr double kBytesPerAddition = 4;  // FP32 lanes; narrower types use as many lanes
}

ReductionTable::ReductionTable(const ReduceSpec& spec, std::uint32_t ports, std::unique_ptr<LineSums> sums)
    : spec_(spec),
      entry_bytes_(entry_bytes(spec, ports)),
      entries_per_port_(static_cast<std::uint32_t>(spec.table_bytes_per_port / entry_bytes_)),
      occupied_(ports, 0),
      sums_(std::move(sums)) {
  WEFT_CHECK(entries_per_port_ > 0, "a reduction table holds at least one entry");
  entries_.resize(std::size_t{entries_per_port_} * ports);
  for (std::size_t i = entries_.size(); i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

std::optional<std::uint32_t> ReductionTable::open(std::uint32_t port, const Packet& request, std::uint32_t members) {
  if (occupied_[port] == entries_per_port_) return std::nullopt;
  ++occupied_[port];
  statistics_.table_high_water_bytes =
      std::max(statistics_.table_high_water_bytes, std::int64_t{occupied_[port]} * entry_bytes_);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  entries_[index] = {request, port, members, members, Time(0)};
  return index;
}

std::optional<Time> ReductionTable::add(std::uint32_t entry, const Packet& reply, Time now) {
  Entry& at = entries_[entry];
  WEFT_CHECK(at.missing > 0, "a reply to an entry that waits for none");
  if (sums_ != nullptr) sums_->add(entry, reply);
  --at.missing;
  // In fixed order nothing is added before the last one is there.
  const bool fixed = spec_.accumulation.order == AccumulationOrder::fixed;
  if (fixed && at.missing != 0) return std::nullopt;
  const double additions = (fixed ? at.members : 1) * reply.payload / kBytesPerAddition;
  adders_free_ = std::max(adders_free_, now) + seconds(additions / spec_.adds_per_second);
  at.sum_ready = adders_free_ + spec_.latency;
  if (at.missing != 0) return std::nullopt;
  statistics_.reduced_bytes += reply.payload;
  return at.sum_ready;
}

Packet ReductionTable::close(std::uint32_t entry) {
  Packet request = entries_[entry].request;
  request.kind = PacketKind::read_reply;
  if (sums_ != nullptr) sums_->send(entry, request);
  --occupied_[entries_[entry].port];
  free_.push_back(entry);
  return request;
}

}  // namespace weft
