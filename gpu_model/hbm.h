// HBM channels, first form: a data bus a channel that serves in arrival order, banks with an open row each, writes
// drained in batches behind a bus turnaround, refresh as a share of bus time. Bus and banks are servers side by side: a
// request ends when both are through with it, as under a scheduler that fills the bubbles of row misses with others'
// bursts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"

namespace weft {

struct HbmStatistics {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t row_hits = 0;
  std::int64_t row_misses = 0;
};

class Hbm {
 public:
  Hbm(const HbmSpec& spec, Frequency clock);

  struct Read {
    SubCycle done = 0;    // the data is at the L2 slice
    SubCycle waited = 0;  // of that, beyond an access to an open row: for other requests and to open the row
  };
  // Reads `sectors` (1 to 4) of the channel's line `local_line` at `now`.
  Read read(std::uint32_t channel, std::uint32_t local_line, std::uint32_t sectors, SubCycle now);
  void prefetch(std::uint32_t channel, std::uint32_t local_line) const {
    __builtin_prefetch(&banks_[bank_of(channel, local_line / lines_per_row_)], 1);
  }
  // Queues a write of `sectors`; full batches are drained.
  void write(std::uint32_t channel, std::uint32_t sectors, SubCycle now);
  // Queues sectors that are added to where they stand: each takes the time of `cost` writes.
  void update(std::uint32_t channel, std::uint32_t sectors, std::uint32_t cost, SubCycle now);
  // When the channel can take another request, given its bounded queue; at most `now` when it can at once.
  [[nodiscard]] SubCycle accepts_from(std::uint32_t channel) const { return channels_[channel].bus_free - queue_time_; }

  // Forgets what is under way: the state of an idle memory at time 0, rows closed.
  void rest();

  [[nodiscard]] const HbmStatistics& statistics() const { return statistics_; }

 private:
  struct Bank {
    std::uint32_t open_row = ~std::uint32_t{0};
    SubCycle activated = std::numeric_limits<SubCycle>::min() / 2;  // at
  };
  struct Channel {
    SubCycle bus_free = 0;
    std::uint32_t queued_write_sectors = 0;
  };

  // Rows are spread over banks; a stride of whole rows does not stay on one bank.
  [[nodiscard]] std::size_t bank_of(std::uint32_t channel, std::uint32_t row) const {
    return std::size_t{channel} * banks_per_channel_ + (row ^ (row >> 5)) % banks_per_channel_;
  }

  SubCycle sector_time_;  // refresh included
  SubCycle queue_time_;
  SubCycle latency_;  // of an unloaded read of an open row, without its burst
  SubCycle row_cycle_;
  SubCycle row_miss_;
  SubCycle turnaround_;
  std::uint32_t batch_sectors_;
  std::uint32_t lines_per_row_;
  std::uint32_t banks_per_channel_;
  std::vector<Channel> channels_;
  std::vector<Bank> banks_;
  HbmStatistics statistics_;
};

}  // namespace weft
