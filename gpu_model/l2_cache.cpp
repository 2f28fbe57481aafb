#include "gpu_model/l2_cache.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/error.h"

namespace weft {

namespace {
constexpr int kSectorBits = 8;              // of a way: 4 valid, 4 dirty
constexpr std::uint32_t kFillEntries = 16;  // of a slice, direct-mapped: a lost one only makes a secondary miss a hit
constexpr std::uint32_t kRotations = 256;
// Set bits of a mask of sectors; a table, since the baseline instruction set has no count.
constexpr std::array<std::uint8_t, 16> kSectorCount = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

constexpr std::uint32_t valid_of(std::uint32_t way) { return (way >> 4) & 15U; }
constexpr std::uint32_t dirty_of(std::uint32_t way) { return way & 15U; }
}  // namespace

L2Cache::L2Cache(const L2Spec& spec, const HbmSpec& hbm, Frequency clock)
    : slices_count_(spec.slices),
      slices_inverse_(~std::uint64_t{0} / spec.slices + 1),
      ways_(spec.ways),
      levels_(static_cast<std::uint32_t>(std::countr_zero(spec.ways))),
      sets_(static_cast<std::uint32_t>(spec.bytes / (std::int64_t{spec.slices} * spec.ways * kLineBytes))),
      sector_time_(cycles(static_cast<double>(kSectorBytes) / spec.bytes_per_cycle)),
      slices_(spec.slices),
      tags_(std::size_t{spec.slices} * sets_, kEmpty),
      sets_state_(std::size_t{spec.slices} * sets_),
      fills_(std::size_t{spec.slices} * kFillEntries),
      hbm_(hbm, clock) {
  WEFT_CHECK(sets_ > 0, "an L2 slice needs a set");
  WEFT_CHECK(std::has_single_bit(spec.ways) && spec.ways <= kMostWays, "2 to 16 ways, a power of two");
  WEFT_CHECK(spec.slices >= 2 && spec.slices <= 256, "2 to 256 L2 slices");
  WEFT_CHECK(hbm.bytes / kLineBytes / spec.slices < (std::int64_t{1} << kTagBits) - 1, "memory too large for L2 tags");
  for (std::uint32_t slice = 0; slice < spec.slices; ++slice) {
    channel_of_.push_back(static_cast<std::uint32_t>(std::uint64_t{slice} * hbm.channels / spec.slices));
  }
  for (std::uint32_t w = 0; w < spec.ways; ++w) {
    std::uint32_t path = 0;
    for (std::uint32_t node = w + spec.ways; node > 1; node /= 2) {  // every node on the way shall point away from it
      path |= 1U << (node / 2);
      if (node % 2 == 0) away_[w] = static_cast<std::uint16_t>(away_[w] | 1U << (node / 2));
    }
    kept_[w] = static_cast<std::uint16_t>(~path);
  }
  for (std::uint32_t i = 0; i < kRotations; ++i) rotation_.push_back((i * 2654435761U >> 8) % spec.slices);
}

L2Cache::Place L2Cache::place(LineAddress line) const {
  const auto local = static_cast<std::uint32_t>(static_cast<Uint128>(slices_inverse_) * line >> 64);
  std::uint32_t slice = line - local * slices_count_ + rotation_[local % kRotations];
  if (slice >= slices_count_) slice -= slices_count_;
  return Place{slice << kTagBits | local};
}

SubCycle L2Cache::take_slice(Place at, std::uint32_t sectors, SubCycle now) {
  Slice& slice = slices_[slice_of(at)];
  const SubCycle start = std::max({now, slice.free, hbm_.accepts_from(channel_of_[slice_of(at)])});
  slice.free = start + sector_time_ * kSectorCount[sectors];
  return start;
}

std::uint32_t L2Cache::victim(std::uint32_t tree) const {
  std::uint32_t node = 1;
  for (std::uint32_t level = 0; level < levels_; ++level) node = node * 2 + (tree >> node & 1U);
  return node - ways_;
}

std::uint32_t L2Cache::touch(Place at, SubCycle now) {
  const std::size_t set = set_of(at);
  std::array<Way, kMostWays>& ways = tags_[set].ways;
  SetState& state = sets_state_[set];
  const std::uint32_t tag = local_line_of(at);
  std::uint32_t match = 0;  // number of the way, from 1; written for the compiler to do several ways at once
  for (std::uint32_t w = 0; w < kMostWays; ++w) match |= ways[w] >> kSectorBits == tag ? w + 1 : 0;
  std::uint32_t found = match - 1;
  if (match == 0) {
    found = victim(state.tree);
    Way& way = ways[found];
    write_back(at, found, now);
    way = tag << kSectorBits;
  }
  state.tree = static_cast<std::uint16_t>((state.tree & kept_[found]) | away_[found]);
  return found;
}

// The dirty sectors of a way of the set go to HBM.
void L2Cache::write_back(Place at, std::uint32_t way, SubCycle now) {
  const std::size_t set = set_of(at);
  const std::uint32_t dirty = dirty_of(tags_[set].ways[way]);
  if (dirty == 0) return;
  const std::uint32_t sectors = kSectorCount[dirty];
  hbm_.write(channel_of_[slice_of(at)], sectors, now);
  if ((sets_state_[set].communication >> way & 1U) != 0) communication_write_back_bytes_ += sectors * kSectorBytes;
}

void L2Cache::rest() {
  std::fill(slices_.begin(), slices_.end(), Slice{});
  std::fill(fills_.begin(), fills_.end(), Fill{});
  statistics_ = {};
  communication_write_back_bytes_ = 0;
  hbm_.rest();
}

L2Cache::Access L2Cache::read(Place at, std::uint32_t sectors, SubCycle now) {
  Access access;
  access.started = take_slice(at, sectors, now);
  access.slice_wait = access.started - now;
  access.done = slices_[slice_of(at)].free;
  Way& way = tags_[set_of(at)].ways[touch(at, access.started)];
  const std::uint32_t missing = sectors & ~valid_of(way);
  Fill& fill = fills_[std::size_t{slice_of(at)} * kFillEntries + local_line_of(at) % kFillEntries];
  if (missing == 0) {
    ++statistics_.hits;
    if (fill.place == at && fill.ready > access.done) {
      access.miss_time = fill.ready - access.done;
      access.done = fill.ready;
    }
    return access;
  }
  ++statistics_.misses;
  way |= missing << 4;
  const auto count = std::uint32_t{kSectorCount[missing]};
  const Hbm::Read fetched = hbm_.read(channel_of_[slice_of(at)], local_line_of(at), count, access.done);
  access.hbm_wait = fetched.waited;
  access.miss_time = fetched.done - access.done - fetched.waited;
  access.done = fetched.done;
  access.fetched_bytes = count * kSectorBytes;
  fill = {at, access.done};
  return access;
}

L2Cache::Access L2Cache::write(Place at, std::uint32_t sectors, bool communication, SubCycle now) {
  Access access;
  access.started = take_slice(at, sectors, now);
  access.slice_wait = access.started - now;
  access.done = slices_[slice_of(at)].free;
  const std::uint32_t found = touch(at, access.started);
  tags_[set_of(at)].ways[found] |= sectors << 4 | sectors;
  std::uint16_t& owners = sets_state_[set_of(at)].communication;
  owners = static_cast<std::uint16_t>((owners & ~(1U << found)) | std::uint32_t{communication} << found);
  return access;
}

L2Cache::Access L2Cache::update(Place at, SubCycle now) {
  Access access;
  access.started = take_slice(at, 15, now);
  access.slice_wait = access.started - now;
  access.done = slices_[slice_of(at)].free;
  std::array<Way, kMostWays>& ways = tags_[set_of(at)].ways;
  for (std::uint32_t w = 0; w < ways_; ++w) {
    if (ways[w] >> kSectorBits != local_line_of(at)) continue;
    write_back(at, w, access.started);
    ways[w] = local_line_of(at) << kSectorBits;
  }
  hbm_.update(channel_of_[slice_of(at)], kLineBytes / kSectorBytes, update_cost_, access.started);
  communication_write_back_bytes_ += kLineBytes;
  return access;
}

}  // namespace weft
