#include "gpu_model/hbm.h"

#include <algorithm>

#include "network/packet.h"
#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kSectorsPerLine = kLineBytes / kSectorBytes;
}

Hbm::Hbm(const HbmSpec& spec, Frequency clock)
    : lines_per_row_(spec.row_bytes / kLineBytes),
      banks_per_channel_(spec.banks),
      channels_(spec.channels),
      banks_(std::size_t{spec.channels} * spec.banks) {
  const ClockDomain domain(clock);
  const double bytes_per_cycle =
      static_cast<double>(spec.bandwidth.count()) / spec.channels / static_cast<double>(clock.count());
  sector_time_ = cycles(kSectorBytes / bytes_per_cycle / (1 - spec.refresh_share));
  queue_time_ = sector_time_ * kSectorsPerLine * spec.queue_lines;
  row_cycle_ = domain.to_subcycles(spec.row_cycle);
  row_miss_ = domain.to_subcycles(spec.row_miss);
  turnaround_ = domain.to_subcycles(spec.turnaround);
  latency_ = domain.to_subcycles(spec.latency) - row_miss_ - sector_time_ * kSectorsPerLine;
  WEFT_CHECK(latency_ >= 0, "HBM latency is below a row miss and a burst");
  batch_sectors_ = spec.write_batch * kSectorsPerLine;
}

void Hbm::rest() {
  std::fill(channels_.begin(), channels_.end(), Channel{});
  std::fill(banks_.begin(), banks_.end(), Bank{});
  statistics_ = {};
}

Hbm::Read Hbm::read(std::uint32_t channel, std::uint32_t local_line, std::uint32_t sectors, SubCycle now) {
  const std::uint32_t row = local_line / lines_per_row_;
  Bank& bank = banks_[bank_of(channel, row)];
  if (bank.open_row == row) {
    ++statistics_.row_hits;
  } else {
    ++statistics_.row_misses;
    bank.activated = std::max(now, bank.activated + row_cycle_);
    bank.open_row = row;
  }
  Channel& at = channels_[channel];
  const SubCycle burst = sector_time_ * sectors;
  const SubCycle unloaded = now + burst;
  at.bus_free = std::max(at.bus_free, now) + burst;
  const SubCycle data = std::max(at.bus_free, bank.activated + row_miss_ + burst);
  statistics_.read_bytes += std::int64_t{sectors} * kSectorBytes;
  return {data + latency_, data - unloaded};
}

void Hbm::write(std::uint32_t channel, std::uint32_t sectors, SubCycle now) {
  Channel& at = channels_[channel];
  statistics_.write_bytes += std::int64_t{sectors} * kSectorBytes;
  at.queued_write_sectors += sectors;
  if (at.queued_write_sectors < batch_sectors_) return;
  at.bus_free = std::max(at.bus_free, now) + 2 * turnaround_ + sector_time_ * at.queued_write_sectors;
  at.queued_write_sectors = 0;
}

void Hbm::update(std::uint32_t channel, std::uint32_t sectors, std::uint32_t cost, SubCycle now) {
  write(channel, sectors * cost, now);
  statistics_.write_bytes -= std::int64_t{sectors} * (cost - 1) * kSectorBytes;  // the bus carries them once
}

}  // namespace weft
