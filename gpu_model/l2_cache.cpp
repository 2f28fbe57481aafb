#include "gpu_model/l2_cache.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kFillEntries = 16;  // of a slice, direct-mapped: a lost one only makes a secondary miss a hit
constexpr std::uint32_t kRotations = 256;
// Set bits of a mask of sectors; a table, since the baseline instruction set has no count.
constexpr std::array<std::uint8_t, 16> kSectorCount = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

std::uint32_t sets_of_slice(const L2Spec& spec) {
  return static_cast<std::uint32_t>(spec.bytes / (std::int64_t{spec.slices} * spec.ways * kLineBytes));
}
std::int64_t lines_of_slice(const L2Spec& spec, const HbmSpec& hbm) { return hbm.bytes / kLineBytes / spec.slices + 1; }
}  // namespace

bool L2Cache::tags_reach(const L2Spec& spec, const HbmSpec& hbm) {
  return L2Tags::reach(sets_of_slice(spec), lines_of_slice(spec, hbm));
}

std::int64_t L2Cache::most_lines_per_slice(const L2Spec& spec) { return L2Tags::most_lines(sets_of_slice(spec)); }

L2Cache::L2Cache(const L2Spec& spec, const HbmSpec& hbm, Frequency clock)
    : slices_count_(spec.slices),
      slices_inverse_(~std::uint64_t{0} / spec.slices + 1),
      far_slices_from_(spec.far_latency_cycles == 0 ? spec.slices : spec.slices / 2),
      channel_shift_(
          hbm.channels > spec.slices ? static_cast<std::uint32_t>(std::countr_zero(hbm.channels / spec.slices)) : 0),
      channel_mask_((1U << channel_shift_) - 1),
      slices_of_channel_(std::max(spec.slices / hbm.channels, 1U)),
      sector_time_(cycles(static_cast<double>(kSectorBytes) / spec.bytes_per_cycle)),
      slices_(spec.slices),
      fills_(std::size_t{spec.slices} * kFillEntries),
      tags_(spec.slices, sets_of_slice(spec), spec.ways, lines_of_slice(spec, hbm), kChunkShift),
      hbm_(hbm, clock) {
  WEFT_CHECK(spec.slices >= 2 && spec.slices <= 256, "2 to 256 L2 slices");
  WEFT_CHECK(std::uint64_t{hbm.channels} * slices_of_channel_ == std::uint64_t{spec.slices} << channel_shift_,
             "channels that divide the slices, or that many times a power of two");
  for (std::uint32_t slice = 0; slice < spec.slices; ++slice) {
    channel_of_.push_back((slice / slices_of_channel_) << channel_shift_);
    slice_in_channel_.push_back(slice % slices_of_channel_);
  }
  for (std::uint32_t i = 0; i < kRotations; ++i) rotation_.push_back((i * 2654435761U >> 8) % spec.slices);
}

L2Cache::Place L2Cache::place(LineAddress line) const {
  const LineAddress chunk = line >> kChunkShift;
  const auto local = static_cast<std::uint32_t>(static_cast<Uint128>(slices_inverse_) * chunk >> 64);
  std::uint32_t slice = chunk - local * slices_count_ + rotation_[local % kRotations];
  if (slice >= slices_count_) slice -= slices_count_;
  return {slice, local << kChunkShift | (line & ((1U << kChunkShift) - 1))};
}

SubCycle L2Cache::take_slice(Place at, std::uint32_t sectors, SubCycle now) {
  Slice& slice = slices_[at.slice];
  const SubCycle start = std::max({now, slice.free, hbm_.accepts_from(channel_of(at))});
  slice.free = start + sector_time_ * kSectorCount[sectors];
  return start;
}

L2Tags::Way& L2Cache::touch(Place at, SubCycle now) {
  const L2Tags::Touched touched = tags_.touch(at.slice, at.line);
  if (L2Tags::dirty(touched.evicted) != 0) {
    const std::uint32_t sectors = kSectorCount[L2Tags::dirty(touched.evicted)];
    const Place victim{at.slice, touched.evicted_line};
    hbm_.write(channel_of(victim), channel_line(victim), sectors, now);
    if ((touched.evicted & L2Tags::kCommunication) != 0) communication_write_back_bytes_ += sectors * kSectorBytes;
  }
  return *touched.way;
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
  access.done = slices_[at.slice].free;
  L2Tags::Way& way = touch(at, access.started);
  const std::uint32_t missing = sectors & ~L2Tags::valid(way);
  Fill& fill = fills_[std::size_t{at.slice} * kFillEntries + at.line % kFillEntries];
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
  const Hbm::Read fetched = hbm_.read(channel_of(at), channel_line(at), count, access.done);
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
  access.done = slices_[at.slice].free;
  L2Tags::Way& way = touch(at, access.started);
  way = (way & ~L2Tags::kCommunication) | sectors << 4 | sectors | (communication ? L2Tags::kCommunication : 0);
  return access;
}

}  // namespace weft
