// The tags of an L2: sets of up to 16 ways a slice, tree pseudo-LRU, invalid ways first. Sets come into being as lines
// do: as long as no line had to be evicted, the tags are those of a cache with fewer sets, and where one would be, they
// double. So a GPU that touched little holds little, and the tags grow to their full size before anything is evicted.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sim/huge_pages.h"
#include "sim/prefetch.h"

namespace weft {

class L2Tags {
 public:
  // One way of a set: tag, who wrote it, valid sectors, dirty sectors; 0 when it holds no line.
  using Way = std::uint32_t;
  static constexpr std::uint32_t kMostWays = 16;
  static constexpr Way kCommunication = 1U << 8;  // a collective wrote its dirty sectors
  static constexpr Way kValid = 0xF0;
  static constexpr Way kDirty = 0x0F;
  static constexpr std::uint32_t valid(Way way) { return (way & kValid) >> 4; }
  static constexpr std::uint32_t dirty(Way way) { return way & kDirty; }

  // `sets` a slice; `lines` a slice are told apart. 2^`chunk_shift`, at most 2, consecutive lines lie in consecutive
  // sets, where the number of sets allows it: what came together is evicted together.
  L2Tags(std::uint32_t slices, std::uint32_t sets, std::uint32_t ways, std::int64_t lines, std::uint32_t chunk_shift);

  // The sets of a chunk's lines lie side by side, a lane each: what lines of one chunk have in common is done at once.
  static constexpr std::uint32_t kLanes = 4;
  using Lanes = Way __attribute__((vector_size(kLanes * sizeof(Way))));
  static bool any(Lanes lanes) {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(lanes);
    return (halves[0] | halves[1]) != 0;
  }

  // GCC and Clang let elements of a vector alias it, but Clang does not take their address.
  static Way* lane_of(Lanes& lanes, std::uint32_t lane) { return reinterpret_cast<Way*>(&lanes) + lane; }

  struct Inserted {
    Way* way = nullptr;  // without sectors yet
    Way evicted = 0;     // what was there
    std::uint32_t evicted_line = 0;
  };
  // Where a line belongs, and on to the next line.
  struct Address {
    std::size_t group = 0;
    std::uint32_t lane = 0;
    std::uint32_t tag = 0;  // with the marker
  };
  // Groups of sets by a multiplicative hash of the chunk: as even as a remainder for consecutive chunks, and strides do
  // not camp. What is left of the product tells apart the chunks of a group. Doubling the groups moves its first bit
  // into the number of the group.
  [[nodiscard]] Address address(std::uint32_t slice, std::uint32_t line) const {
    const std::uint64_t product = std::uint64_t{(line >> chunk_shift_) * multiplier_ & mask_} * groups_;
    return {std::size_t{slice} * groups_ + (product >> bits_), line & chunk_mask_,
            (static_cast<std::uint32_t>(product) & mask_) >> tag_drop_ | marker_};
  }
  void next(Address& at, std::uint32_t slice, std::uint32_t line) const {
    if ((line & chunk_mask_) == 0) [[unlikely]] {
      at = address(slice, line);
    } else {
      ++at.lane;
    }
  }
  // The way of the line, which is the most recently used of its set now; null when it is not there.
  Way* find(const Address& at) {
    Group& group = groups_of_sets_[at.group];
    const std::uint32_t match = ways_of(group, at.tag)[at.lane];
    if (match == 0) return nullptr;
    use(group.trees, match - 1, lane_bits(at.lane));
    return lane_of(group.ways[match - 1], at.lane);
  }
  // Whether the lines of a chunk lie side by side.
  [[nodiscard]] bool holds_chunks() const { return chunk_mask_ + 1 == kLanes; }
  // Makes room for a line that is not there. `at` is its address, renewed when the tags grow.
  Inserted insert(Address& at, std::uint32_t slice, std::uint32_t line);

  // As find() and, when none is there, insert() of all lines of a chunk, the first one at `at`, if they lie in the same
  // way of their sets or will.
  struct Row {
    Lanes* ways = nullptr;  // null, and nothing is changed: they do not, the tags would grow, or have fewer lanes
    bool found = false;
    Lanes evicted{};  // what was there before
  };
  Row row(const Address& at);
  // The line of a way in a lane, that is held or was evicted.
  [[nodiscard]] std::uint32_t line_of(std::uint32_t slice, std::size_t group, std::uint32_t lane, Way way) const;

  // Visits each line that is held: visit(slice, line, way).
  template <class Visit>
  void for_each_line(Visit&& visit) const {
    for (std::size_t g = 0; g < groups_of_sets_.size(); ++g) {
      const auto slice = static_cast<std::uint32_t>(g / groups_);
      for (const Lanes& ways : groups_of_sets_[g].ways) {
        for (std::uint32_t lane = 0; lane <= chunk_mask_; ++lane) {
          if (ways[lane] != 0) visit(slice, line_of(slice, g, lane, ways[lane]), ways[lane]);
        }
      }
    }
  }

  // Hints to the host's own caches that lines of a chunk will be touched soon.
  void prefetch(std::uint32_t slice, std::uint32_t line) const {
    const auto* group = reinterpret_cast<const std::byte*>(&groups_of_sets_[address(slice, line).group]);
    for (std::size_t at = 0; at < sizeof(Group); at += 64) prefetch_line(group + at);
  }

  // Whether a good part of the cache has been in use: the tags have a quarter of all sets or more.
  [[nodiscard]] bool much_used() const { return 4 * groups_ >= most_groups_; }

  // Of the host, at present.
  [[nodiscard]] std::size_t bytes() const { return groups_of_sets_.size() * sizeof(Group); }

  // Whether tags of `sets` sets a slice tell `lines` lines apart.
  static bool reach(std::uint32_t sets, std::int64_t lines) { return lines <= most_lines(sets); }
  static std::int64_t most_lines(std::uint32_t sets);

 private:
  struct Group {
    std::array<Lanes, kMostWays> ways{};
    std::uint64_t trees = 0;  // where the least recently used way lies, a bit a node and 16 bits a lane
  };
  static constexpr std::uint32_t kTagShift = 9;
  static constexpr std::uint32_t kTagBits = 22;  // one bit marks that there is a line
  static constexpr std::uint32_t kTreeBits = 16;
  static constexpr std::uint64_t kEachTree = 0x0001000100010001;
  static constexpr std::uint16_t kFull = 1;  // bit 0 of a tree: no way is free

  // By lane, the number of the way with the tag, from 1; 0 when there is none.
  static Lanes ways_of(const Group& group, std::uint32_t tag) {
    const Lanes wanted = Lanes{} + tag;
    Lanes match{};
    for (std::uint32_t w = 0; w < kMostWays; ++w) {
      match |= static_cast<Lanes>((group.ways[w] >> kTagShift) == wanted) & (w + 1);
    }
    return match;
  }
  static std::uint64_t lane_bits(std::uint32_t lane) { return std::uint64_t{0xFFFF} << (kTreeBits * lane); }
  void use(std::uint64_t& trees, std::uint32_t way, std::uint64_t lanes) const {
    trees = (trees & (kept_[way] | ~lanes)) | (away_[way] & lanes);
  }
  [[nodiscard]] static std::uint32_t tree_of(std::uint64_t trees, std::uint32_t lane) {
    return static_cast<std::uint16_t>(trees >> (kTreeBits * lane));
  }
  [[nodiscard]] std::uint32_t victim(std::uint32_t tree) const;
  void grow();

  std::uint32_t ways_;
  std::uint32_t levels_;  // of the replacement tree: log2(ways)
  std::uint32_t chunk_shift_;
  std::uint32_t chunk_mask_;
  std::uint32_t groups_;  // of a slice, at present
  std::uint32_t most_groups_;
  std::uint64_t groups_inverse_ = 0;  // 2^64 / groups
  std::uint32_t bits_;                // of a chunk's number
  std::uint32_t mask_;
  std::uint32_t multiplier_;
  std::uint32_t multiplier_inverse_;
  std::uint32_t tag_drop_ = 0;  // log2 of the groups: so many bits of the rest do not tell chunks apart
  std::uint32_t marker_ = 0;    // the bit above a tag
  // By way, for the trees of all lanes: the nodes that are not on its path, and those that shall point to the right.
  std::array<std::uint64_t, kMostWays> kept_{};
  std::array<std::uint64_t, kMostWays> away_{};
  HugeVector<Group> groups_of_sets_;
};

}  // namespace weft
