#include "gpu_model/hbm.h"

#include <algorithm>

#include "network/packet.h"
#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kSectorsPerLine = kLineBytes / kSectorBytes;
}

Hbm::Hbm(const HbmSpec& spec, Frequency clock)
    : queue_sectors_(spec.queue_lines * kSectorsPerLine),
      batch_sectors_(spec.write_batch * kSectorsPerLine),
      banks_per_channel_(spec.banks),
      row_inverse_(inverse(spec.row_bytes / kLineBytes)),
      banks_inverse_(inverse(spec.banks)),
      channels_(spec.channels),
      bank_places_(std::size_t{spec.channels} * spec.banks) {
  WEFT_CHECK(spec.write_batch <= kMostBatchLines, "more writes in a batch than the queue holds");
  const ClockDomain domain(clock);
  const double bytes_per_cycle =
      static_cast<double>(spec.bandwidth.count()) / spec.channels / static_cast<double>(clock.count());
  const SubCycle burst = cycles(kSectorBytes / bytes_per_cycle);
  constexpr auto kOne = static_cast<double>(std::int64_t{1} << kFractionBits);
  const double bus_per_subcycle = static_cast<double>(BusTime{1} << kSlotShift) / static_cast<double>(burst);
  to_bus_ = static_cast<std::int64_t>(kOne * bus_per_subcycle + 0.5);
  from_bus_ = static_cast<std::int64_t>(kOne / bus_per_subcycle + 0.5);
  const auto bus = [&](Time t) { return bus_time(domain.to_subcycles(t)); };
  activation_time_ = std::max<BusTime>(bus(spec.activation), 1);
  activation_inverse_ = static_cast<std::int64_t>(kOne / static_cast<double>(activation_time_));
  row_cycle_ = bus(spec.row_cycle);
  row_miss_ = bus(spec.row_miss);
  write_recovery_ = bus(spec.write_recovery);
  turnaround_slots_ = slot_at_or_after(bus(spec.turnaround));
  refresh_interval_slots_ = slot_at_or_after(bus(spec.refresh_interval));
  refresh_slots_ = spec.refresh.count() == 0 ? 0 : slot_at_or_after(bus(spec.refresh + spec.row_miss));
  latency_ = domain.to_subcycles(spec.latency) - domain.to_subcycles(spec.row_miss) - burst * kSectorsPerLine;
  WEFT_CHECK(latency_ >= 0, "HBM latency is below a row miss and a burst");
  WEFT_CHECK(refresh_interval_slots_ > refresh_slots_, "a refresh takes longer than the interval between two");
  rest();
}

void Hbm::rest() {
  std::fill(channels_.begin(), channels_.end(), Channel{});
  std::fill(bank_places_.begin(), bank_places_.end(), 0);
  banks_.clear();
  // Channels refresh one after another, so that not all of the memory stops at once.
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    channels_[c].next_refresh =
        refresh_interval_slots_ * static_cast<std::int64_t>(c + 1) / static_cast<std::int64_t>(channels_.size());
  }
  statistics_ = {};
}

std::uint32_t Hbm::add_bank() {
  if (banks_.size() == banks_.capacity()) banks_.reserve(banks_.size() + banks_.size() / 4 + 64);  // no twice as many
  banks_.emplace_back();
  return static_cast<std::uint32_t>(banks_.size());
}

// Lets the bus calendar begin at the slot, and puts the refreshes in that come into its window.
void Hbm::advance(Channel& at, std::int64_t slot) {
  if (!at.bus.advance(slot) || at.next_refresh >= at.bus.window_end() || refresh_slots_ == 0) return;
  if (at.next_refresh + refresh_slots_ < slot) {  // asleep meanwhile
    at.next_refresh += (slot - at.next_refresh - refresh_slots_) / refresh_interval_slots_ * refresh_interval_slots_;
  }
  while (at.next_refresh < at.bus.window_end()) {
    const std::int64_t end = at.next_refresh + refresh_slots_;
    at.bus.close(at.next_refresh, end);
    if (end > at.bus.window_end()) return;  // the rest when the window has gone on
    at.next_refresh += refresh_interval_slots_;
  }
}

// The queue is full while more sectors wait than it holds, or while one waits for longer than the calendar sees ahead.
void Hbm::accept_later(Channel& at) const {
  at.accepts = subcycles(std::max(at.bus.work_end() - queue_sectors_, at.bus.tail() - kMostAheadSlots));
}

// Closes the bank's row and opens another, as early as bank and activations let it.
void Hbm::open_row(Channel& at, Bank& bank, std::uint32_t row, BusTime now) {
  const BusTime earliest = std::max(now, bank.closes);
  const auto slot = [&](BusTime t) { return scaled(t, activation_inverse_); };
  at.activations.advance(slot(now));
  const std::int64_t wanted = slot(earliest);
  const std::int64_t taken = at.activations.take(wanted, 1);
  const BusTime precharge = taken == wanted ? earliest : std::max(earliest, taken * activation_time_);
  bank.row_before = bank.row;
  bank.row = row;
  bank.open_from = precharge + row_miss_;
  bank.closes = precharge + row_cycle_;
}

Hbm::Read Hbm::read(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, SubCycle now,
                    bool communication) {
  const std::uint32_t row = row_of(line);
  Channel& at = channels_[channel];
  Bank& bank = bank_at(bank_of(channel, row));
  const BusTime arrival = bus_time(now);
  const std::int64_t first = slot_at_or_after(arrival);
  advance(at, first);
  statistics_.read_bytes += std::int64_t{sectors} * kSectorBytes;
  double ahead = 0;
  if (communication) {
    at.ahead.add(first, at.bus.tail(), sectors);
  } else {
    ahead = at.ahead.share(first, at.bus.tail());
  }
  std::int64_t last = 0;
  // The row before is open until the precharge; free bursts follow closely, or it is not worth the while.
  const std::int64_t precharge = (bank.open_from - row_miss_) >> kSlotShift;
  if (bank.row_before == row && at.bus.first_free(first) + sectors <= precharge) {
    ++statistics_.row_hits;
    last = at.bus.take(first, sectors);
  } else {
    if (bank.row == row) {
      ++statistics_.row_hits;
    } else {
      ++statistics_.row_misses;
      open_row(at, bank, row, arrival);
    }
    last = at.bus.take(std::max(first, slot_at_or_after(bank.open_from)), sectors);
    bank.closes = std::max(bank.closes, (last + 1) << kSlotShift);
  }
  accept_later(at);
  const SubCycle data = subcycles(last + 1);
  const SubCycle waited = data - now - subcycles(sectors);
  return {data + latency_, waited, ahead * static_cast<double>(waited)};
}

void Hbm::write(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, SubCycle now, bool communication) {
  Channel& at = channels_[channel];
  queue(channel, row_of(line), sectors, communication);
  if (at.queued_sectors >= batch_sectors_ || at.queued_rows == kMostBatchLines) drain(channel, bus_time(now));
}

void Hbm::queue(std::uint32_t channel, std::uint32_t row, std::uint32_t sectors, bool communication) {
  if (queues_.empty()) queues_.resize(channels_.size());
  Channel& at = channels_[channel];
  WriteQueue& queue = queues_[channel];
  statistics_.write_bytes += std::int64_t{sectors} * kSectorBytes;
  if (communication) at.queued_communication += sectors;
  std::uint32_t entry = at.queued_rows;
  while (entry > 0 && queue.rows[entry - 1] != row) --entry;  // most likely the row came last
  if (entry == 0) {
    entry = ++at.queued_rows;
    queue.rows[entry - 1] = row;
    queue.sectors[entry - 1] = 0;
  }
  --entry;
  queue.sectors[entry] = static_cast<std::uint16_t>(queue.sectors[entry] + sectors);
  at.queued_sectors += sectors;
}

// One row a bank: others stay queued. Rows are opened while reads go on, so that the batch holds the bus for no longer
// than its bursts take.
void Hbm::drain(std::uint32_t channel, BusTime now) {
  Channel& at = channels_[channel];
  WriteQueue& queue = queues_[channel];
  const std::int64_t first = slot_at_or_after(now);
  advance(at, first);
  const std::int64_t tail = at.bus.tail();
  const std::int64_t reads_end = std::max(first, tail);
  const bool turned = tail == at.writes_end && first < tail + turnaround_slots_;  // no read since the last batch
  std::int64_t start = turned ? reads_end : reads_end + turnaround_slots_;
  struct Write {
    std::int64_t ready;
    std::uint32_t entry;
  };
  std::array<Write, kMostBatchLines> batch;
  std::uint32_t rows = 0;
  std::int64_t sectors = 0;
  std::uint64_t banks = 0;  // by number modulo 64
  for (std::uint32_t entry = 0; entry < at.queued_rows; ++entry) {
    const std::size_t index = bank_of(channel, queue.rows[entry]);
    const std::uint64_t bit = std::uint64_t{1} << (index & 63);
    if ((banks & bit) != 0) continue;
    banks |= bit;
    Bank& bank = bank_at(index);
    if (bank.row == queue.rows[entry]) {
      ++statistics_.row_hits;
    } else {
      ++statistics_.row_misses;
      open_row(at, bank, queue.rows[entry], now);
    }
    sectors += queue.sectors[entry];
    // First-ready: those of rows that are open first go first.
    const std::int64_t ready = slot_at_or_after(bank.open_from);
    std::uint32_t place = rows++;
    for (; place > 0 && batch[place - 1].ready > ready; --place) batch[place] = batch[place - 1];
    batch[place] = {ready, entry};
  }
  std::int64_t before = 0;
  for (std::uint32_t i = 0; i < rows; ++i) {
    start = std::max(start, batch[i].ready - before);
    before += queue.sectors[batch[i].entry];
  }
  if (at.queued_communication > 0) {  // its share of the batch, and of the turnarounds
    const std::int64_t part = sectors * at.queued_communication / at.queued_sectors;
    at.ahead.add(first, tail, part + 2 * turnaround_slots_ * part / sectors);
    at.queued_communication -= static_cast<std::uint32_t>(part);
  }
  if (turned) at.bus.reopen(tail, tail + turnaround_slots_);
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t entry = batch[i].entry;
    Bank& bank = bank_at(bank_of(channel, queue.rows[entry]));
    const std::int64_t last = at.bus.take(std::max(start, batch[i].ready), queue.sectors[entry]);
    bank.closes = std::max(bank.closes, ((last + 1) << kSlotShift) + write_recovery_);
  }
  at.writes_end = at.bus.tail();
  at.bus.close(turned ? reads_end : start - turnaround_slots_, at.writes_end + turnaround_slots_);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < rows; ++i) queue.sectors[batch[i].entry] = 0;
  for (std::uint32_t entry = 0; entry < at.queued_rows; ++entry) {
    if (queue.sectors[entry] == 0) continue;
    queue.rows[kept] = queue.rows[entry];
    queue.sectors[kept++] = queue.sectors[entry];
  }
  at.queued_rows = kept;
  at.queued_sectors -= static_cast<std::uint32_t>(sectors);
  accept_later(at);
}

void Hbm::update(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, std::uint32_t cost, SubCycle now) {
  write(channel, line, sectors * cost, now, true);
  statistics_.write_bytes -= std::int64_t{sectors} * (cost - 1) * kSectorBytes;  // the bus carries them once
}

}  // namespace weft
