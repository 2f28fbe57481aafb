// The L2 of a GPU and the HBM behind it: address-hashed slices with real tags, 128 B lines of 32 B sectors, write-back,
// and write allocation without a fetch.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/hbm.h"
#include "gpu_model/l2_tags.h"
#include "network/packet.h"

namespace weft {

struct L2Statistics {
  std::int64_t hits = 0;  // lines
  std::int64_t misses = 0;
};

class L2Cache {
 public:
  L2Cache(const L2Spec& spec, const HbmSpec& hbm, Frequency clock);

  struct Access {
    SubCycle started = 0;             // the slice took it; what held a buffer place for it may give that free
    SubCycle done = 0;                // data at the slice's output, or write accepted
    SubCycle slice_wait = 0;          // for the slice
    SubCycle hbm_wait = 0;            // for other requests at the HBM channel
    SubCycle miss_time = 0;           // what the miss added without any waiting
    std::uint32_t fetched_bytes = 0;  // from HBM
  };
  // Where a line lives: its slice, and its number among the lines of that slice.
  struct Place {
    std::uint32_t slice = 0;
    std::uint32_t line = 0;
    bool operator==(const Place&) const = default;
  };
  [[nodiscard]] Place place(LineAddress line) const;
  // The partition of the chip that the place belongs to.
  [[nodiscard]] std::uint32_t partition_of(Place at) const { return at.slice >= far_slices_from_ ? 1 : 0; }
  // Hints to the host's own caches that this place will be accessed soon.
  void prefetch(Place at) const {
    tags_.prefetch(at.slice, at.line);
    hbm_.prefetch(channel_of(at), channel_line(at));
  }

  // One line, `sectors` as a mask of its four 32 B sectors. Calls come in ascending `now`.
  Access read(Place place, std::uint32_t sectors, SubCycle now);
  // `communication`: whose data it is, to tell whose write-back it will be.
  Access write(Place place, std::uint32_t sectors, bool communication, SubCycle now);

  // HBM bytes written back so far that collectives had written.
  [[nodiscard]] std::int64_t communication_write_back_bytes() const { return communication_write_back_bytes_; }

  // Forgets what is under way and keeps what is cached: the state of an idle GPU at time 0.
  void rest();

  [[nodiscard]] const L2Statistics& statistics() const { return statistics_; }
  [[nodiscard]] const Hbm& hbm() const { return hbm_; }

  // Whether the tags tell apart all lines of the memory, and how many they do.
  static bool tags_reach(const L2Spec& spec, const HbmSpec& hbm);
  static std::int64_t most_lines_per_slice(const L2Spec& spec);

 private:
  struct Slice {
    SubCycle free = 0;
  };
  // Lines that are on their way from HBM: who asks for one meanwhile gets it when it arrives.
  struct Fill {
    Place place{~std::uint32_t{0}, 0};
    SubCycle ready = 0;
  };

  // Consecutive lines that lie in one slice and in one row of one channel, log2: 512 B. UNSOURCED: accel-sim's mapping
  // of an A100 has 256 B; with that, rows are hit half of the time and not three quarters, and writes fall short by 8
  // %.
  static constexpr std::uint32_t kChunkShift = 2;

  // Several slices share a channel, or a slice takes turns between several.
  [[nodiscard]] std::uint32_t channel_of(Place at) const {
    return channel_of_[at.slice] + (at.line >> kChunkShift & channel_mask_);
  }
  [[nodiscard]] std::uint32_t channel_line(Place at) const {
    const std::uint32_t chunk =
        (at.line >> kChunkShift >> channel_shift_) * slices_of_channel_ + slice_in_channel_[at.slice];
    return chunk << kChunkShift | (at.line & ((1U << kChunkShift) - 1));
  }
  SubCycle take_slice(Place at, std::uint32_t sectors, SubCycle now);
  // The line's way, after making room for it if it was not there.
  L2Tags::Way& touch(Place at, SubCycle now);

  std::uint32_t slices_count_;
  std::uint64_t slices_inverse_;  // 2^64 / slices
  std::uint32_t far_slices_from_;
  std::uint32_t channel_shift_;  // log2 of the channels of a slice
  std::uint32_t channel_mask_;
  std::uint32_t slices_of_channel_;  // 1 where a slice has several
  SubCycle sector_time_;             // of a slice
  std::vector<std::uint32_t> channel_of_;
  std::vector<std::uint32_t> slice_in_channel_;
  std::vector<std::uint32_t> rotation_;  // breaks up strides that would camp on one slice
  std::vector<Slice> slices_;
  std::vector<Fill> fills_;
  L2Tags tags_;
  Hbm hbm_;
  std::int64_t communication_write_back_bytes_ = 0;
  L2Statistics statistics_;
};

}  // namespace weft
