// The L2 of a GPU and the HBM behind it: address-hashed slices with real tags, 128 B lines of 32 B sectors, write-back,
// and write allocation without a fetch.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_model/hbm.h"
#include "gpu_model/l2_tags.h"
#include "gpu_model/tlb.h"
#include "gpu_model/work_ahead.h"
#include "network/packet.h"

namespace weft {

struct L2Statistics {
  std::int64_t hits = 0;  // lines
  std::int64_t misses = 0;
};

class L2Cache {
 public:
  L2Cache(const L2Spec& spec, const HbmSpec& hbm, Frequency clock);

  // Consecutive lines, with masks of the 32 B sectors that are meant of the first and of the last (both of a single
  // one).
  struct Lines {
    LineAddress first = 0;
    std::uint32_t count = 1;
    std::uint32_t first_sectors = 15;
    std::uint32_t last_sectors = 15;
    // The half of the chip that asks: 0 or 1, or none, which is near to both.
    std::uint32_t partition = kNoPartition;
    bool communication = false;  // who asks, or whose data it is: to tell who held whom up
  };
  static constexpr std::uint32_t kNoPartition = 2;
  struct Access {
    SubCycle started = 0;  // a slice took the first line; what held a buffer place for it may give that free
    SubCycle done = 0;     // all data at the slices' outputs, or all writes accepted
    // Summed over lines:
    SubCycle slice_wait = 0;  // for the slice
    // What communication cost them: its requests ahead at the slice, or lines that it put out of the cache; its
    // requests ahead at the HBM channel. 0 for its own.
    double held_by_cache = 0;
    double held_by_hbm = 0;
    std::uint32_t fetched_bytes = 0;  // from HBM
  };
  // Lines that arrive `spacing` after one another, the first at `now`. What misses of a chunk is fetched together.
  // Calls come in ascending `now`.
  Access read(const Lines& lines, SubCycle now, SubCycle spacing = 0);
  Access write(const Lines& lines, SubCycle now, SubCycle spacing = 0);
  // Reads, changes and writes the lines in their slices; what is not there is fetched first.
  Access atomic(const Lines& lines, SubCycle now, SubCycle spacing = 0);
  // When a translation that a unit asks for at `now` is there.
  SubCycle translate(LineAddress line, SubCycle now) { return page_table_.translate(line, now); }
  // Hints to the host's own caches that these lines will be accessed soon.
  void prefetch(LineAddress first, std::uint32_t count) const;

  // Where a line lives: its slice, and its number among the lines of that slice.
  struct Place {
    std::uint32_t slice = 0;
    std::uint32_t line = 0;
  };
  [[nodiscard]] Place place(LineAddress line) const;
  [[nodiscard]] LineAddress address(Place at) const;  // and back

  // A whole line is added to in memory, for a collective: the copy here, if there is one, is written back and
  // forgotten.
  Access update(LineAddress line, SubCycle now);
  // What an update takes of a channel's time, in writes of the same size.
  void set_update_cost(std::uint32_t writes) { update_cost_ = writes; }

  // The lines are there now, as if they had been used, in no time.
  enum class Use { read, write, atomic };
  struct Touched {
    std::int64_t fetched_bytes = 0;  // from HBM, as they would have been
    std::int64_t written_back_bytes = 0;

    Touched& operator+=(const Touched& more) {
      fetched_bytes += more.fetched_bytes;
      written_back_bytes += more.written_back_bytes;
      return *this;
    }
  };
  // `slices`: only those whose number has none of these bits are told, as a sample of all.
  Touched touch(const Lines& lines, Use use, std::uint32_t slices = kAllSlices);
  static constexpr std::uint32_t kAllSlices = 0;
  // Of all slices, those that are told.
  [[nodiscard]] double share_told(std::uint32_t slices) const;

  // Visits each line that it holds, but for copies: visit(line, dirty, communication).
  template <class Visit>
  void for_each_line(Visit&& visit) const {
    tags_.for_each_line([&](std::uint32_t slice, std::uint32_t line, L2Tags::Way way) {
      if (line < lines_of_slice_)
        visit(address({slice, line}), L2Tags::dirty(way) != 0, (way & L2Tags::kCommunication) != 0);
    });
  }

  // Before the first access: communication gets slices and lines of its own, or HBM of its own. What either has in the
  // cache the other still finds there.
  void make_private(bool cache, bool hbm);

  // HBM bytes written back so far that collectives had written.
  [[nodiscard]] std::int64_t communication_write_back_bytes() const { return communication_write_back_bytes_; }

  // What comes from now on goes by a lower clock, or by the full one again; HBM keeps its own.
  void set_stretch(Stretch stretch);

  // Forgets what is under way and keeps what is cached: the state of an idle GPU at time 0.
  void rest();

  [[nodiscard]] const L2Statistics& statistics() const { return statistics_; }
  [[nodiscard]] HbmStatistics hbm_statistics() const;  // also of communication's own
  [[nodiscard]] const PageTable& page_table() const { return page_table_; }

  // Whether the tags tell apart all lines of the memory, and how many they do.
  static bool tags_reach(const L2Spec& spec, const HbmSpec& hbm);
  static std::int64_t most_lines_per_slice(const L2Spec& spec);

 private:
  struct Slice {
    SubCycle free = 0;
    SubCycle write_free = 0;  // where writes have a port of their own
    WorkAhead ahead;
    WorkAhead stalls;  // of what the slice has ahead, when it waits for room in the queue of its channel
  };
  // Chunks of which lines are on their way from HBM: who asks for one meanwhile gets it when it arrives.
  class Fill {
   public:
    Fill() = default;
    Fill(std::uint32_t chunk, SubCycle ready)
        : chunk_(chunk), ready_(std::bit_cast<std::array<std::uint32_t, 2>>(ready)) {}
    [[nodiscard]] bool is_of(std::uint32_t chunk) const { return chunk_ == chunk; }
    [[nodiscard]] SubCycle ready() const { return std::bit_cast<SubCycle>(ready_); }

   private:
    std::uint32_t chunk_ = ~std::uint32_t{0};   // of the slice
    std::array<std::uint32_t, 2> ready_{0, 0};  // in halves: thousands of GPUs have a thousand each, without gaps
  };

  // Consecutive lines that lie in one slice and in one row of one channel, log2: 512 B. Between two sources:
  // accel-sim's mapping of an A100 has 256 B, with which rows are hit half of the time and not three quarters, and
  // writes fall short by 8 %; on a V100, bits of the address from 10 on choose the memory module (Jain et al.,
  // Fractional GPUs, RTAS 2019, doc/REVERSE.md), and the benchmarks of Jin et al. (MICRO 2024) read 1 KiB of a slice on
  // V100, A100 and H100.
  static constexpr std::uint32_t kChunkShift = 2;
  static constexpr std::uint32_t kChunkLines = 1U << kChunkShift;
  static constexpr std::uint32_t kFillEntries =
      16;  // of a slice, direct-mapped: a lost one makes a late hit an early one

  // Set bits of a mask of sectors; a table, since the baseline instruction set has no count.
  static constexpr std::array<std::uint8_t, 16> kSectorCount = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

  static std::uint32_t sectors_of(const Lines& lines, std::uint32_t index) {
    return (index == 0 ? lines.first_sectors : 15U) & (index + 1 == lines.count ? lines.last_sectors : 15U);
  }
  // Several slices share a channel, or a slice takes turns between several.
  [[nodiscard]] std::uint32_t channel_of(Place at) const {
    return channel_of_[at.slice] + (at.line >> kChunkShift & channel_mask_);
  }
  [[nodiscard]] std::uint32_t channel_line(Place at) const {
    const std::uint32_t chunk =
        (at.line >> kChunkShift >> channel_shift_) * slices_of_channel_ + slice_in_channel_[at.slice];
    return chunk << kChunkShift | (at.line & (kChunkLines - 1));
  }
  // Requests for lines of a chunk that wait for their slice: the slice is through with them at `ready`.
  struct Waiting {
    SubCycle ready = 0;
    std::uint32_t chunk = ~std::uint32_t{0};  // of the slice
    std::uint32_t lines = 0;                  // a mask
  };
  static constexpr std::uint32_t kWaitingEntries = 128;  // of a slice, direct-mapped: who is not found asks again
  // Requests for whole lines [from, to) that another one waits for are served with it. Else those at `at`, in the slice
  // that the asking half reads, are waited for from now on once `await` says so.
  bool joins(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival, SubCycle spacing,
             Access& access);
  void await(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to);
  // Serves the lines [from, to) of `lines`, which lie in the chunk at `at`.
  void read_chunk(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                  SubCycle spacing, Access& access);
  void write_chunk(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                   SubCycle spacing, Access& access);
  // All lines and sectors of a chunk at once, whose ways are `row` in the tags' group. When the first one begins:
  SubCycle pass(Place at, const Lines& lines, std::uint32_t from, SubCycle arrival, SubCycle spacing, bool writes,
                Access& access);
  void read_whole(Place at, const Lines& lines, const L2Tags::Row& row, std::size_t group, SubCycle start,
                  Access& access);
  void write_whole(Place at, const Lines& lines, const L2Tags::Row& row, std::size_t group, SubCycle start);
  // Requests for `count` lines come by the port that written data come by, ahead of these: writes have that much less.
  void take_requests(Slice& slice, std::uint32_t count, SubCycle arrival) const {
    if (request_time_ > 0) slice.write_free = std::max(slice.write_free, arrival) + request_time_ * count;
  }
  // Whether the lines [from, to) are all of a chunk and pass the slice without a gap; and their ways then, else none.
  [[nodiscard]] bool is_whole(const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle spacing,
                              SubCycle line_time) const;
  L2Tags::Row whole(const L2Tags::Address& address, const Lines& lines, std::uint32_t from, std::uint32_t to,
                    SubCycle spacing, SubCycle line_time);
  // What is missing of a chunk comes from HBM.
  void fetch(Place at, const Lines& lines, std::uint32_t missing_lines, std::uint32_t missing_sectors, SubCycle from,
             bool lost_one, Access& access);
  // Books what `count` lines wait that come to the slice at `arrival`, whose port is free at `free`; the time at which
  // it takes them.
  SubCycle take(Slice& slice, SubCycle free, std::uint32_t channel, SubCycle arrival, const Lines& lines,
                std::uint32_t count, Access& access);
  [[nodiscard]] SubCycle& write_port(Slice& slice) const { return writes_apart_ ? slice.write_free : slice.free; }
  // Where a line is, as `address` says; null when it is not there.
  L2Tags::Way* find(const L2Tags::Address& address, Place at, bool communication);
  // The way for a line that is not there; writes back what was.
  L2Tags::Way& allocate(L2Tags::Address& address, Place at, bool communication, SubCycle now);
  // A way that held the line at `at` makes room for another's, communication's or not.
  void put_out(L2Tags::Way way, Place at, bool communication, SubCycle now);
  // All ways of a row, the first at `start`.
  void put_out(L2Tags::Lanes ways, std::uint32_t slice, std::size_t group, bool communication, SubCycle start);
  [[nodiscard]] Fill& fill_of(Place at, bool communication) {
    return fills_[slice_of(at, communication) * kFillEntries + (at.line >> kChunkShift) % kFillEntries];
  }
  [[nodiscard]] L2Tags& tags(bool communication) { return communication && own_tags_ ? *own_tags_ : tags_; }
  [[nodiscard]] Hbm& hbm(bool communication) { return communication && own_hbm_ ? *own_hbm_ : hbm_; }
  [[nodiscard]] std::size_t slice_of(Place at, bool communication) const {
    return at.slice + (communication && own_tags_ ? slices_count_ : 0);
  }
  // Whether communication has put the line out of the cache; forgets it.
  bool lost(Place at);
  [[nodiscard]] std::uint32_t half_of(Place at) const { return at.slice >= far_slices_from_ ? 1 : 0; }
  // From units of this half, or of none.
  [[nodiscard]] bool is_far(Place at, std::uint32_t half) const { return half + half_of(at) == 1; }
  [[nodiscard]] SubCycle far_latency(Place at, const Lines& lines) const {
    return is_far(at, lines.partition) ? far_latency_ : 0;
  }
  // Where copies of a line are, under a number that no line of that slice has.
  [[nodiscard]] Place copy_of(Place at) const {
    return {at.slice < far_slices_from_ ? at.slice + far_slices_from_ : at.slice - far_slices_from_,
            at.line + lines_of_slice_};
  }
  // Whether what units of this half write there takes a second place. As long as little of the cache is used, copies
  // could put nothing out, and a GPU that touches little costs the host little.
  [[nodiscard]] bool makes_copies(Place at, std::uint32_t half, bool communication) const {
    return far_copies_ && is_far(at, half) && (communication && own_tags_ ? *own_tags_ : tags_).much_used();
  }
  // Lines [from, to) of `lines`, which lie in the chunk at `at`, are written from the other half.
  void write_copies(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle now);
  // The dirty sectors of a way that holds the line at `at` go to HBM.
  void write_back(L2Tags::Way way, Place at, SubCycle now);

  std::uint32_t slices_count_;
  std::uint64_t slices_inverse_;  // 2^64 / slices
  std::uint32_t far_slices_from_;
  SubCycle far_latency_;
  std::uint32_t lines_of_slice_;  // a multiple of a chunk's
  bool far_copies_;
  bool coalesces_;
  std::uint32_t channel_shift_;  // log2 of the channels of a slice
  std::uint32_t channel_mask_;
  std::uint32_t slices_of_channel_;  // 1 where a slice has several
  SubCycle sector_time_;             // of a slice
  SubCycle line_time_;               // of four
  bool writes_apart_;                // by a port of their own
  SubCycle write_sector_time_, write_line_time_;
  SubCycle request_time_;        // of that port, for a request to read a line
  SubCycle atomic_sector_time_;  // of its atomic unit
  std::vector<std::uint32_t> channel_of_;
  std::vector<std::uint32_t> slice_in_channel_;
  std::vector<std::uint32_t> rotation_;  // breaks up strides that would camp on one slice
  std::vector<Slice> slices_;
  std::vector<Fill> fills_;
  std::vector<Waiting> waiting_;  // of a slice kWaitingEntries, once a kernel reads
  L2Tags tags_;
  Hbm hbm_;
  std::optional<L2Tags> own_tags_;  // communication's
  std::optional<Hbm> own_hbm_;
  // Lines that communication put out of the cache, plus one, by slice and the lowest bits of their number: empty until
  // it does.
  std::vector<std::uint32_t> lost_;
  PageTable page_table_;
  struct {
    SubCycle sector = 0, write_sector = 0, request = 0, atomic_sector = 0, far_latency = 0;
  } full_clock_;  // times at it
  std::int64_t communication_write_back_bytes_ = 0;
  std::uint32_t update_cost_ = 1;
  L2Statistics statistics_;
};

}  // namespace weft
