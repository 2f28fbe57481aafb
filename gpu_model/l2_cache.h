// The L2 of a GPU and the HBM behind it: address-hashed slices with real tags, 128 B lines of 32 B sectors, tree
// pseudo-LRU replacement, write-back, and write allocation without a fetch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu_model/hbm.h"
#include "network/packet.h"
#include "sim/huge_pages.h"

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
  // Where a line lives: its slice (8 bits) and its number among the lines of that slice (24 bits).
  enum class Place : std::uint32_t {};
  [[nodiscard]] Place place(LineAddress line) const;
  // Hints to the host's own caches that this place will be accessed soon.
  void prefetch(Place place) const {
    const std::size_t set = set_of(place);
    __builtin_prefetch(&tags_[set], 1);
    __builtin_prefetch(&sets_state_[set], 1);
    hbm_.prefetch(channel_of_[slice_of(place)], local_line_of(place));
  }

  // One line, `sectors` as a mask of its four 32 B sectors. Calls come in ascending `now`.
  Access read(Place place, std::uint32_t sectors, SubCycle now);
  // `communication`: whose data it is, to tell whose write-back it will be.
  Access write(Place place, std::uint32_t sectors, bool communication, SubCycle now);

  // A whole line is added to in memory, for a collective: the copy here, if there is one, is written back and
  // forgotten.
  Access update(Place place, SubCycle now);
  // What an update takes of a channel's time, in writes of the same size.
  void set_update_cost(std::uint32_t writes) { update_cost_ = writes; }

  // HBM bytes written back so far that collectives had written.
  [[nodiscard]] std::int64_t communication_write_back_bytes() const { return communication_write_back_bytes_; }

  // Forgets what is under way and keeps what is cached: the state of an idle GPU at time 0.
  void rest();

  [[nodiscard]] const L2Statistics& statistics() const { return statistics_; }
  [[nodiscard]] const Hbm& hbm() const { return hbm_; }

 private:
  // One way of a set: tag (24 bits), valid sectors (4), dirty sectors (4).
  using Way = std::uint32_t;
  static constexpr std::uint32_t kMostWays = 16;
  struct alignas(64) Set {  // one cache line of the host
    std::array<Way, kMostWays> ways;
  };
  // No line has this tag: place() stays below it.
  static constexpr Set kEmpty = [] {
    Set set{};
    for (Way& way : set.ways) way = ~Way{0} << 8;
    return set;
  }();
  struct SetState {
    std::uint16_t tree = 0;           // where the least recently used way lies, a bit a node
    std::uint16_t communication = 0;  // ways whose dirty sectors a collective wrote, a bit a way
  };
  struct Slice {
    SubCycle free = 0;
  };
  // Lines that are on their way from HBM: who asks for one meanwhile gets it when it arrives.
  struct Fill {
    Place place{~std::uint32_t{0}};
    SubCycle ready = 0;
  };

  static constexpr std::uint32_t kTagBits = 24;
  static std::uint32_t slice_of(Place p) { return static_cast<std::uint32_t>(p) >> kTagBits; }
  static std::uint32_t local_line_of(Place p) { return static_cast<std::uint32_t>(p) & ((1U << kTagBits) - 1); }
  // Sets by a multiplicative hash: as even as a remainder for consecutive lines, and strides do not camp.
  [[nodiscard]] std::size_t set_of(Place p) const {
    const std::uint32_t hash = local_line_of(p) * 2654435761U;
    return std::size_t{slice_of(p)} * sets_ + (std::uint64_t{hash} * sets_ >> 32);
  }
  SubCycle take_slice(Place at, std::uint32_t sectors, SubCycle now);
  // The number of the line's way, after making room for it if it was not there.
  std::uint32_t touch(Place at, SubCycle now);
  void write_back(Place at, std::uint32_t way, SubCycle now);
  [[nodiscard]] std::uint32_t victim(std::uint32_t tree) const;

  std::uint32_t slices_count_;
  std::uint64_t slices_inverse_;  // 2^64 / slices
  std::uint32_t ways_;
  std::uint32_t levels_;  // of the replacement tree: log2(ways)
  std::uint32_t sets_;
  SubCycle sector_time_;  // of a slice
  std::vector<std::uint32_t> channel_of_;
  std::vector<std::uint32_t> rotation_;  // breaks up strides that would camp on one slice
  std::vector<Slice> slices_;
  HugeVector<Set> tags_;
  HugeVector<SetState> sets_state_;
  // By way, for the tree: the nodes that are not on its path, and those that shall point to the right.
  std::array<std::uint16_t, kMostWays> kept_{};
  std::array<std::uint16_t, kMostWays> away_{};
  std::vector<Fill> fills_;
  Hbm hbm_;
  std::int64_t communication_write_back_bytes_ = 0;
  std::uint32_t update_cost_ = 1;
  L2Statistics statistics_;
};

}  // namespace weft
