#include "gpu_model/l2_tags.h"

#include <algorithm>
#include <bit>

#include "sim/error.h"
#include "sim/units.h"

namespace weft {

namespace {
constexpr std::uint32_t kMostDoublings = 6;  // from the first sets to all
constexpr std::uint64_t kAllTrees = ~std::uint64_t{0};

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
  WEFT_CHECK(chunk_shift <= 2, "more lines in a chunk than lanes");
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
    std::uint64_t path = 0;
    std::uint64_t right = 0;
    for (std::uint32_t node = w + ways; node > 1; node /= 2) {  // every node on the way shall point away from it
      path |= std::uint64_t{1} << (node / 2);
      if (node % 2 == 0) right |= std::uint64_t{1} << (node / 2);
    }
    kept_[w] = ~(path * kEachTree);
    away_[w] = right * kEachTree;
  }
  groups_of_sets_.resize(std::size_t{slices} * groups_);
}

std::uint32_t L2Tags::victim(std::uint32_t tree) const {
  std::uint32_t node = 1;
  for (std::uint32_t level = 0; level < levels_; ++level) node = node * 2 + (tree >> node & 1U);
  return node - ways_;
}

std::uint32_t L2Tags::line_of(std::uint32_t slice, std::size_t group, std::uint32_t lane, Way way) const {
  // The address backwards.
  const std::uint64_t tag = way >> kTagShift & (marker_ - 1);
  const std::uint64_t least = ((group - std::size_t{slice} * groups_) << bits_) + (tag << tag_drop_);
  const std::uint64_t hash =  // the one multiple of the groups from `least` on, divided; one group has no inverse
      groups_ == 1 ? least
                   : static_cast<std::uint64_t>(static_cast<Uint128>(groups_inverse_) * (least + groups_ - 1) >> 64);
  return (static_cast<std::uint32_t>(hash) * multiplier_inverse_ & mask_) << chunk_shift_ | lane;
}

L2Tags::Inserted L2Tags::insert(Address& at, std::uint32_t slice, std::uint32_t line) {
  for (;;) {
    Group& group = groups_of_sets_[at.group];
    const std::uint32_t tree = tree_of(group.trees, at.lane);
    std::uint32_t found = victim(tree);
    if ((tree & kFull) == 0) {
      if (group.ways[found][at.lane] != 0) {
        found = 0;
        while (found < ways_ && group.ways[found][at.lane] != 0) ++found;
      }
      if (found == ways_) {
        group.trees |= std::uint64_t{kFull} << (kTreeBits * at.lane);
        found = victim(tree);
      }
    }
    Way& way = group.ways[found][at.lane];
    if (way != 0 && groups_ < most_groups_) {
      grow();
      at = address(slice, line);
      continue;
    }
    const Way evicted = way;
    way = at.tag << kTagShift;
    use(group.trees, found, lane_bits(at.lane));
    return {&way, evicted, evicted != 0 ? line_of(slice, at.group, at.lane, evicted) : 0};
  }
}

L2Tags::Row L2Tags::row(const Address& at) {
  if (!holds_chunks()) return {};
  Group& group = groups_of_sets_[at.group];
  const Lanes match = ways_of(group, at.tag);
  const std::uint32_t number = match[0];
  if (any(match ^ number)) return {};
  if (number != 0) {
    use(group.trees, number - 1, kAllTrees);
    return {&group.ways[number - 1], true, Lanes{}};
  }
  const std::uint32_t tree = tree_of(group.trees, 0);
  if (group.trees != tree * kEachTree) return {};
  const std::uint32_t way = victim(tree);
  Lanes& held = group.ways[way];
  const Lanes evicted = held;
  const bool full = (tree & kFull) != 0;
  if (full ? groups_ < most_groups_ : any(evicted)) return {};
  held = Lanes{} + (at.tag << kTagShift);
  use(group.trees, way, kAllTrees);
  return {&held, false, evicted};
}

// Each set becomes two: its lines part by the first bit of their tags, which all of them lose. They count as used in
// the order of their ways.
void L2Tags::grow() {
  marker_ >>= 1;  // a set with two lines has tags of a bit at least
  ++tag_drop_;
  groups_ *= 2;
  groups_inverse_ = ~std::uint64_t{0} / groups_ + 1;
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  constexpr Way kBelowTag = (1U << kTagShift) - 1;
  HugeVector<Group> grown(groups_of_sets_.size() * 2);
  for (std::size_t g = 0; g < groups_of_sets_.size(); ++g) {
    for (std::uint32_t w = 0; w < ways_; ++w) {
      const Lanes& row = groups_of_sets_[g].ways[w];
      const auto heir = [&](Way way) -> Group& { return grown[g * 2 + ((way >> kTagShift & marker_) != 0 ? 1 : 0)]; };
      const auto rest = [&](auto way) {
        return (way & (((marker_ - 1) << kTagShift) | kBelowTag)) | marker_ << kTagShift;
      };
      // In the order in which an empty set fills.
      Group& common = heir(row[0]);
      const std::uint32_t tree = tree_of(common.trees, 0);
      if (row[0] != 0 && !any((row ^ row[0]) & ~kBelowTag) && common.trees == tree * kEachTree) {
        const std::uint32_t free = victim(tree);
        common.ways[free] = rest(row);
        use(common.trees, free, kAll);
        continue;
      }
      for (std::uint32_t lane = 0; lane <= chunk_mask_; ++lane) {
        if (row[lane] == 0) continue;
        Group& group = heir(row[lane]);
        const std::uint32_t free = victim(tree_of(group.trees, lane));
        group.ways[free][lane] = rest(row[lane]);
        use(group.trees, free, lane_bits(lane));
      }
    }
  }
  groups_of_sets_ = std::move(grown);
}

}  // namespace weft
