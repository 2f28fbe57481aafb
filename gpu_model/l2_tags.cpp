#include "gpu_model/l2_tags.h"

#include <algorithm>
#include <bit>

#include "sim/error.h"
#include "sim/units.h"

namespace weft {

namespace {
constexpr std::uint32_t kMostDoublings = 6;  // from the first sets to all

std::uint32_t log2_floor(std::uint32_t n) { return static_cast<std::uint32_t>(std::bit_width(n)) - 1; }
std::uint32_t line_bits(std::int64_t lines) {
  return std::max(1U, static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(lines - 1))));
}
}  // namespace

std::int64_t L2Tags::most_lines(std::uint32_t sets) {
  return std::int64_t{1} << std::min(kTagBits + log2_floor(sets), 31U);
}

L2Tags::L2Tags(std::uint32_t slices, std::uint32_t sets, std::uint32_t ways, std::int64_t lines,
               std::uint32_t chunk_shift)
    : ways_(ways),
      levels_(log2_floor(ways)),
      chunk_shift_(std::min(chunk_shift, static_cast<std::uint32_t>(std::countr_zero(sets)))),
      chunk_mask_((1U << chunk_shift_) - 1),
      groups_(sets >> chunk_shift_),
      most_groups_(groups_),
      bits_(line_bits(lines) > chunk_shift_ ? line_bits(lines) - chunk_shift_ : 1),
      mask_(static_cast<std::uint32_t>((std::uint64_t{1} << bits_) - 1)),
      multiplier_(2654435769U >> (32 - bits_) | 1U),  // 2^bits over the golden ratio, odd
      multiplier_inverse_(multiplier_) {
  WEFT_CHECK(std::has_single_bit(ways) && ways >= 2 && ways <= kMostWays, "2 to 16 ways, a power of two");
  WEFT_CHECK(sets > 0 && reach(sets, lines), "memory too large for the tags of the L2");
  for (int i = 0; i < 4; ++i) multiplier_inverse_ *= 2 - multiplier_ * multiplier_inverse_;  // Newton: 3, 6, ... bits
  for (std::uint32_t half = 0; half < kMostDoublings; ++half) {
    if (groups_ % 2 != 0 || !reach(groups_ / 2 << chunk_shift_, lines)) break;
    groups_ /= 2;
  }
  tag_drop_ = std::min(log2_floor(groups_), bits_);
  marker_ = 1U << (bits_ - tag_drop_);
  groups_inverse_ = ~std::uint64_t{0} / groups_ + 1;
  for (std::uint32_t w = 0; w < ways; ++w) {
    std::uint32_t path = 0;
    for (std::uint32_t node = w + ways; node > 1; node /= 2) {  // every node on the way shall point away from it
      path |= 1U << (node / 2);
      if (node % 2 == 0) away_[w] = static_cast<std::uint16_t>(away_[w] | 1U << (node / 2));
    }
    kept_[w] = static_cast<std::uint16_t>(~path);
  }
  sets_.resize((std::size_t{slices} * groups_) << chunk_shift_);
  trees_.resize(sets_.size());
}

std::uint32_t L2Tags::victim(std::uint32_t tree) const {
  std::uint32_t node = 1;
  for (std::uint32_t level = 0; level < levels_; ++level) node = node * 2 + (tree >> node & 1U);
  return node - ways_;
}

std::uint32_t L2Tags::line_of(std::uint32_t slice, std::size_t set, std::uint32_t tag) const {
  const std::uint64_t group = (set >> chunk_shift_) - std::size_t{slice} * groups_;
  const std::uint64_t least = (group << bits_) + (std::uint64_t{tag & (marker_ - 1)} << tag_drop_);
  const std::uint64_t hash =  // the one multiple of the groups from `least` on, divided; one group has no inverse
      groups_ == 1 ? least
                   : static_cast<std::uint64_t>(static_cast<Uint128>(groups_inverse_) * (least + groups_ - 1) >> 64);
  return (static_cast<std::uint32_t>(hash) * multiplier_inverse_ & mask_) << chunk_shift_ |
         (static_cast<std::uint32_t>(set) & chunk_mask_);
}

L2Tags::Inserted L2Tags::insert(Address& at, std::uint32_t slice, std::uint32_t line) {
  for (;;) {
    Set& set = sets_[at.set];
    std::uint16_t& tree = trees_[at.set];
    std::uint32_t found = victim(tree);
    if ((tree & kFull) == 0) {
      if (set.ways[found] != 0) {
        found = 0;
        while (found < ways_ && set.ways[found] != 0) ++found;
      }
      if (found == ways_) {
        tree |= kFull;
        found = victim(tree);
      }
    }
    Way& way = set.ways[found];
    if (way != 0 && groups_ < most_groups_) {
      grow();
      at = address(slice, line);
      continue;
    }
    const Way evicted = way;
    way = at.tag << kTagShift;
    use(tree, found);
    return {&way, evicted, evicted != 0 ? line_of(slice, at.set, evicted >> kTagShift) : 0};
  }
}

// Each set becomes two: its lines part by the first bit of their tags, which all of them lose. They count as used in
// the order of their ways.
void L2Tags::grow() {
  marker_ >>= 1;  // a set with two lines has tags of a bit at least
  ++tag_drop_;
  groups_ *= 2;
  groups_inverse_ = ~std::uint64_t{0} / groups_ + 1;
  HugeVector<Set> sets(sets_.size() * 2);
  HugeVector<std::uint16_t> trees(sets.size());
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    for (std::uint32_t w = 0; w < ways_; ++w) {
      const Way way = sets_[s].ways[w];
      if (way == 0) continue;
      const std::uint32_t tag = way >> kTagShift;
      const std::size_t group = (s >> chunk_shift_) * 2 + ((tag & marker_) != 0 ? 1 : 0);
      const std::size_t set = group << chunk_shift_ | (s & chunk_mask_);
      const std::uint32_t free = victim(trees[set]);  // in the order in which an empty set fills
      sets[set].ways[free] = ((tag & (marker_ - 1)) | marker_) << kTagShift | (way & ((1U << kTagShift) - 1));
      use(trees[set], free);
    }
  }
  sets_ = std::move(sets);
  trees_ = std::move(trees);
}

}  // namespace weft
