// HBM channels: banks with an open row, a data bus, activations, turnarounds between reads and writes, refresh. Nothing
// here is an event: a request is placed in the channel's calendars when it comes, and its answer's time follows.
//
// - The bus is a calendar of bursts (a sector each, tCCD). A request takes the first free bursts from when its row is
//   open, so those of open rows overtake those that wait for a row: first-ready, first-come first-served.
// - A row that is not open waits for its bank (tRC; a write's recovery), then precharges and activates (tRP + tRCD).
//   Activations are a second calendar, one each tFAW / 4. While a bank is due to change rows, the row that is still
//   open serves what comes in time. A bank without an open row costs as much as one with another row.
// - Writes gather, a list of rows, and drain as a batch: behind all reads placed so far, and no read gets in between.
//   The bus rests for a turnaround on both sides, but not between batches with no read between them.
// - All banks of a channel refresh together each tREFI; the bus is closed for tRFC and a row miss. Rows are as open
//   afterwards as before.
//
// Left out: bank groups (a line's sectors are taken to lie in different groups, which hides tCCD_L), ECC, temperature.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/slot_calendar.h"
#include "gpu_model/work_ahead.h"
#include "sim/prefetch.h"

namespace weft {

struct HbmStatistics {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;  // drained or queued
  std::int64_t row_hits = 0;     // reads, and rows of a batch of writes
  std::int64_t row_misses = 0;
};

class Hbm {
 public:
  static constexpr std::uint32_t kMostBatchLines = 64;
  static constexpr std::uint32_t kMostQueuedLines = 96;  // three quarters of what the bus calendar sees

  Hbm(const HbmSpec& spec, Frequency clock);

  struct Read {
    SubCycle done = 0;    // the data is at the L2 slice
    SubCycle waited = 0;  // of that, beyond an access to an open row: for other requests and to open the row
    double held = 0;      // of that, for communication's requests
  };
  // Reads `sectors` of the channel's line `line`, and of those behind it in the same row, at `now`. A channel's calls
  // come in ascending `now`; an earlier one counts as of the slot of the one before.
  Read read(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, SubCycle now, bool communication = false);
  void prefetch(std::uint32_t channel) const { prefetch_line(&channels_[channel]); }  // for accepts_from()
  // Queues a write of `sectors`; full batches are drained.
  void write(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, SubCycle now,
             bool communication = false);
  // The same if the batch is far from full; else false, and nothing is queued.
  bool write_if_room(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, bool communication) {
    Channel& at = channels_[channel];
    if (at.queued_sectors + sectors >= batch_sectors_ || at.queued_rows + 1 >= kMostBatchLines) return false;
    queue(channel, row_of(line), sectors, communication);
    return true;
  }
  // Queues sectors that are added to where they stand: each takes the time of `cost` writes.
  void update(std::uint32_t channel, std::uint32_t line, std::uint32_t sectors, std::uint32_t cost, SubCycle now);
  // When the channel can take another request, given its bounded queue; at most `now` when it can at once. Good to 64
  // sectors: the calendar counts by words.
  [[nodiscard]] SubCycle accepts_from(std::uint32_t channel) const { return channels_[channel].accepts; }
  // The share of communication in what the channel has to do at `now`.
  [[nodiscard]] double communication_ahead(std::uint32_t channel, SubCycle now) {
    Channel& at = channels_[channel];
    if (!at.ahead.has_any()) return 0;
    return at.ahead.share(slot_at_or_after(bus_time(now)), at.bus.tail());
  }

  // Forgets what is under way: the state of an idle memory at time 0, rows closed.
  void rest();

  [[nodiscard]] const HbmStatistics& statistics() const { return statistics_; }

 private:
  // 2^-16 of a burst, so that the slot of a time is a shift.
  using BusTime = std::int64_t;
  static constexpr int kSlotShift = 16;
  static constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

  struct Bank {
    BusTime open_from = 0;  // columns of the open row; in the future while it is being opened
    BusTime closes = 0;     // the earliest precharge of the open row
    std::uint32_t row = kNoRow;
    std::uint32_t row_before = kNoRow;  // open until the precharge
  };
  struct alignas(64) Channel {
    SubCycle accepts = 0;
    WorkAhead ahead;  // in slots
    SlotCalendar<8> bus;
    std::int64_t next_refresh = 0;  // slot
    std::int64_t writes_end = -1;   // slot after the last write
    SlotCalendar<4> activations;
    std::uint32_t queued_sectors = 0;
    std::uint32_t queued_communication = 0;  // of these
    std::uint32_t queued_rows = 0;
  };
  // What waits to be written in a channel.
  struct WriteQueue {
    std::array<std::uint32_t, kMostBatchLines> rows;
    std::array<std::uint16_t, kMostBatchLines> sectors;  // by queued row
  };

  // Rows are spread over banks; a stride of whole rows does not stay on one bank.
  [[nodiscard]] std::size_t bank_of(std::uint32_t channel, std::uint32_t row) const {
    const std::uint32_t spread = row ^ (row >> 5);
    return std::size_t{channel} * banks_per_channel_ + spread - quotient(spread, banks_inverse_) * banks_per_channel_;
  }
  // Until the next one: it may move them.
  [[nodiscard]] Bank& bank_at(std::size_t index) {
    std::uint32_t& place = bank_places_[index];
    if (place == 0) [[unlikely]]
      place = add_bank();
    return banks_[place - 1];
  }
  std::uint32_t add_bank();
  [[nodiscard]] std::uint32_t row_of(std::uint32_t line) const { return quotient(line, row_inverse_); }
  // Divided by a number whose inverse() is given: a division takes the host longer than all else here.
  static std::uint32_t quotient(std::uint32_t n, std::uint64_t inverse) {
    return static_cast<std::uint32_t>(static_cast<Uint128>(inverse) * (std::uint64_t{n} + 1) >> 64);
  }
  static constexpr std::uint64_t inverse(std::uint32_t divisor) { return ~std::uint64_t{0} / divisor; }
  static constexpr int kFractionBits = 40;
  [[nodiscard]] BusTime bus_time(SubCycle t) const { return scaled(t, to_bus_); }
  [[nodiscard]] SubCycle subcycles(std::int64_t slot) const { return scaled(slot << kSlotShift, from_bus_); }
  static std::int64_t scaled(std::int64_t t, std::int64_t factor) {
    return static_cast<std::int64_t>((static_cast<Int128>(t) * factor + (Int128{1} << (kFractionBits - 1))) >>
                                     kFractionBits);
  }
  static std::int64_t slot_at_or_after(BusTime t) { return (t + (BusTime{1} << kSlotShift) - 1) >> kSlotShift; }

  void queue(std::uint32_t channel, std::uint32_t row, std::uint32_t sectors, bool communication);
  void advance(Channel& at, std::int64_t slot);
  void accept_later(Channel& at) const;
  void open_row(Channel& at, Bank& bank, std::uint32_t row, BusTime now);
  void drain(std::uint32_t channel, BusTime now);

  static constexpr std::int64_t kMostAheadSlots = 4 * std::int64_t{kMostQueuedLines};
  std::int64_t to_bus_;              // bus time in a subcycle, 40 fraction bits
  std::int64_t from_bus_;            // and back
  std::int64_t activation_inverse_;  // activations in a unit of bus time, 40 fraction bits
  BusTime activation_time_;          // tFAW / 4
  BusTime row_cycle_;
  BusTime row_miss_;
  BusTime write_recovery_;
  std::int64_t turnaround_slots_;
  std::int64_t refresh_interval_slots_;
  std::int64_t refresh_slots_;
  SubCycle latency_;  // of an unloaded read of an open row, without its burst
  std::uint32_t queue_sectors_;
  std::uint32_t batch_sectors_;
  std::uint32_t banks_per_channel_;
  std::uint64_t row_inverse_;    // of the lines of a row
  std::uint64_t banks_inverse_;  // of banks_per_channel_
  std::vector<Channel> channels_;
  std::vector<WriteQueue> queues_;  // by channel, from the first write on: where all stays in the L2 there is none
  std::vector<std::uint32_t> bank_places_;  // by channel and bank: in banks_, plus one; 0: it had no access yet
  std::vector<Bank> banks_;                 // a GPU of thousands comes to few of them
  HbmStatistics statistics_;
};

}  // namespace weft
