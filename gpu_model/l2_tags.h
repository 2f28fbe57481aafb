// The tags of an L2: sets of up to 16 ways a slice, tree pseudo-LRU, invalid ways first. Sets come into being as lines
// do: as long as no line had to be evicted, the tags are those of a cache with fewer sets, and where one would be, they
// double. So a GPU that touched little holds little, and the tags grow to their full size before anything is evicted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/huge_pages.h"

namespace weft {

class L2Tags {
 public:
  // One way of a set: tag, who wrote it, valid sectors, dirty sectors; 0 when it holds no line.
  using Way = std::uint32_t;
  static constexpr std::uint32_t kMostWays = 16;
  static constexpr Way kCommunication = 1U << 8;  // a collective wrote its dirty sectors
  static constexpr std::uint32_t valid(Way way) { return way >> 4 & 15U; }
  static constexpr std::uint32_t dirty(Way way) { return way & 15U; }

  // `sets` a slice; `lines` a slice are told apart. 2^`chunk_shift` consecutive lines lie in consecutive sets, where
  // the number of sets allows it: what came together is evicted together.
  L2Tags(std::uint32_t slices, std::uint32_t sets, std::uint32_t ways, std::int64_t lines, std::uint32_t chunk_shift);

  struct Inserted {
    Way* way = nullptr;  // without sectors yet
    Way evicted = 0;     // what was there
    std::uint32_t evicted_line = 0;
  };
  // Where a line belongs, and on to the next line.
  struct Address {
    std::size_t set = 0;
    std::uint32_t tag = 0;  // with the marker
  };
  // Groups of sets by a multiplicative hash of the chunk: as even as a remainder for consecutive chunks, and strides do
  // not camp. What is left of the product tells apart the chunks of a group. Doubling the groups moves its first bit
  // into the number of the group.
  [[nodiscard]] Address address(std::uint32_t slice, std::uint32_t line) const {
    const std::uint64_t product = std::uint64_t{(line >> chunk_shift_) * multiplier_ & mask_} * groups_;
    const std::size_t group = std::size_t{slice} * groups_ + (product >> bits_);
    return {group << chunk_shift_ | (line & chunk_mask_),
            (static_cast<std::uint32_t>(product) & mask_) >> tag_drop_ | marker_};
  }
  void next(Address& at, std::uint32_t slice, std::uint32_t line) const {
    if ((line & chunk_mask_) == 0) [[unlikely]] {
      at = address(slice, line);
    } else {
      ++at.set;
    }
  }
  // The way of the line, which is the most recently used of its set now; null when it is not there.
  Way* find(const Address& at) {
    Set& set = sets_[at.set];
    const std::uint32_t match = way_of(set, at.tag);
    if (match == 0) return nullptr;
    use(trees_[at.set], match - 1);
    return &set.ways[match - 1];
  }
  // Makes room for a line that is not there. `at` is its address, renewed when the tags grow.
  Inserted insert(Address& at, std::uint32_t slice, std::uint32_t line);

  // Hints to the host's own caches that these lines of a chunk will be touched soon.
  void prefetch(std::uint32_t slice, std::uint32_t line, std::uint32_t count) const {
    const std::size_t set = address(slice, line).set;
    for (std::size_t s = set; s < std::min(set + count, sets_.size()); ++s) __builtin_prefetch(&sets_[s], 1);
    __builtin_prefetch(&trees_[set], 1);
  }

  // Of the host, at present.
  [[nodiscard]] std::size_t bytes() const { return sets_.size() * (sizeof(Set) + sizeof(std::uint16_t)); }

  // Whether tags of `sets` sets a slice tell `lines` lines apart.
  static bool reach(std::uint32_t sets, std::int64_t lines) { return lines <= most_lines(sets); }
  static std::int64_t most_lines(std::uint32_t sets);

 private:
  struct alignas(64) Set {  // one cache line of the host
    std::array<Way, kMostWays> ways{};
  };
  static constexpr std::uint32_t kTagShift = 9;
  static constexpr std::uint32_t kTagBits = 22;  // one bit marks that there is a line
  static constexpr std::uint16_t kFull = 1;      // bit 0 of a tree: no way is free

  // The number of the tag's way, from 1; 0 when it has none. Four ways at a time: left to itself, the compiler takes
  // one after another where this is inlined.
  using Four = std::uint32_t __attribute__((vector_size(16)));
  static std::uint32_t way_of(const Set& set, std::uint32_t tag) {
    const Four wanted = {tag, tag, tag, tag};
    Four number = {1, 2, 3, 4};
    Four match = {0, 0, 0, 0};
    for (std::uint32_t w = 0; w < kMostWays; w += 4, number += 4) {
      Four ways;
      std::memcpy(&ways, &set.ways[w], sizeof ways);
      match |= static_cast<Four>((ways >> kTagShift) == wanted) & number;
    }
    return match[0] | match[1] | match[2] | match[3];
  }
  // The line of a set's tag: the address backwards.
  [[nodiscard]] std::uint32_t line_of(std::uint32_t slice, std::size_t set, std::uint32_t tag) const;
  void use(std::uint16_t& tree, std::uint32_t way) const {
    tree = static_cast<std::uint16_t>((tree & kept_[way]) | away_[way]);
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
  // By way, for the tree: the nodes that are not on its path, and those that shall point to the right.
  std::array<std::uint16_t, kMostWays> kept_{};
  std::array<std::uint16_t, kMostWays> away_{};
  HugeVector<Set> sets_;
  HugeVector<std::uint16_t> trees_;  // where the least recently used way lies, a bit a node
};

}  // namespace weft
