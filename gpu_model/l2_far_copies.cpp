// Copies of the lines of one half of the L2 in the other: each half caches what the units next to it read (NVIDIA A100
// whitepaper, L2 cache), so a line that both halves read takes two places. A copy is clean; writes, atomics and updates
// take place at home, the point of coherence, and drop it. That they do is UNSOURCED; an update of the copy would
// differ by what is read again.
#include <algorithm>

#include "gpu_model/l2_cache.h"

namespace weft {

namespace {
// What the other half did, for the half that asked; which of them started is its own matter.
void add_far(const L2Cache::Access& home, L2Cache::Access& access) {
  access.done = std::max(access.done, home.done);
  access.slice_wait += home.slice_wait;
  access.held_by_cache += home.held_by_cache;
  access.held_by_hbm += home.held_by_hbm;
  access.fetched_bytes += home.fetched_bytes;
}
}  // namespace

void L2Cache::read_far(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                       SubCycle spacing, Access& access) {
  L2Tags& copies = tags(lines.communication);
  const std::size_t slice_index = slice_of(copy_of(at), lines.communication);
  Slice& slice = slices_[slice_index];
  take_requests(slice, to - from, arrival);
  const std::uint32_t chunk = copy_of(at).line >> kChunkShift;
  Fill& fill = fills_[slice_index * kFillEntries + chunk % kFillEntries];
  const auto pass_all = [&] {
    const SubCycle start = std::max(arrival, slice.free);
    if (from == 0) access.started = start;
    access.slice_wait +=
        kChunkLines * (start - arrival) + (line_time_ - spacing) * (kChunkLines * (kChunkLines - 1) / 2);
    slice.free = start + line_time_ * kChunkLines;
  };
  // All lines of a chunk: most often all have copies, or none has.
  if (copies.holds_chunks() && is_whole(lines, from, to, spacing, line_time_)) {
    std::uint32_t found = 0;
    bool valid = true;
    for (const L2Tags::Way* const way : copies.find_chunk(copies.address(copy_of(at).slice, copy_of(at).line))) {
      if (way == nullptr) continue;
      ++found;
      valid = valid && L2Tags::valid(*way) == 15;
    }
    if (found == kChunkLines && valid) {
      pass_all();
      access.done = std::max(access.done, fill.is_of(chunk) ? std::max(fill.ready(), slice.free) : slice.free);
      statistics_.hits += kChunkLines;
      return;
    }
    if (found == 0) {
      pass_all();
      Access home;
      read_chunk(at, lines, from, to, arrival, spacing, home);
      const L2Tags::Address address = copies.address(copy_of(at).slice, copy_of(at).line);  // tags may have grown
      if (const L2Tags::Row row = copies.row(address); row.ways != nullptr) {
        put_out(row.evicted, copy_of(at).slice, address.group, lines.communication, arrival);
        *row.ways |= L2Tags::kValid;
      } else {
        Place copy = copy_of(at);
        for (std::uint32_t i = 0; i < kChunkLines; ++i, ++copy.line) {
          L2Tags::Address one = copies.address(copy.slice, copy.line);
          allocate(one, copy, lines.communication, arrival + i * spacing) |= L2Tags::kValid;
        }
      }
      fill = {chunk, home.done};
      add_far(home, access);
      return;
    }
  }
  Access home;
  std::uint32_t first_missing = from;  // lines from here to the one at hand have no copy
  const SubCycle arrived = arrival;
  const auto fetch_before = [&](std::uint32_t end) {
    if (first_missing == end) return;
    Place missing{at.slice, at.line + first_missing - from};
    // At the time of arrival, not of the near slice's look-up: a slice takes its requests in ascending order.
    const SubCycle asked = arrived + (first_missing - from) * spacing;
    read_chunk(missing, lines, first_missing, end, asked, spacing, home);
    for (std::uint32_t i = first_missing; i < end; ++i, ++missing.line) {
      const Place copy = copy_of(missing);
      L2Tags::Address address = copies.address(copy.slice, copy.line);
      L2Tags::Way* const found = find(address, copy, lines.communication);
      L2Tags::Way& way = found != nullptr ? *found : allocate(address, copy, lines.communication, asked);
      way |= sectors_of(lines, i) << 4;
    }
    fill = {chunk, home.done};
  };
  for (std::uint32_t i = from; i < to; ++i, arrival += spacing) {
    const Place copy = copy_of({at.slice, at.line + i - from});
    const std::uint32_t sectors = sectors_of(lines, i);
    const SubCycle start = std::max(arrival, slice.free);
    if (i == 0) access.started = start;
    access.slice_wait += start - arrival;
    slice.free = start + sector_time_ * kSectorCount[sectors];
    const L2Tags::Way* const found = find(copies.address(copy.slice, copy.line), copy, lines.communication);
    if (found == nullptr || (sectors & ~L2Tags::valid(*found)) != 0) continue;
    fetch_before(i);
    first_missing = i + 1;
    access.done = std::max(access.done, fill.is_of(chunk) ? std::max(fill.ready(), slice.free) : slice.free);
    ++statistics_.hits;
  }
  fetch_before(to);
  add_far(home, access);
}

void L2Cache::drop_copies(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to) {
  for (const bool communication : {false, true}) {
    if (communication && !own_tags_) break;
    L2Tags& of = tags(communication);
    if (!of.much_used()) continue;
    Place copy = copy_of(at);
    L2Tags::Address address = of.address(copy.slice, copy.line);
    if (of.holds_chunks() && to - from == kChunkLines && sectors_of(lines, from) == 15 &&
        sectors_of(lines, to - 1) == 15) {
      for (L2Tags::Way* const way : of.find_chunk(address)) {
        if (way != nullptr) *way &= ~L2Tags::kValid;
      }
      continue;
    }
    for (std::uint32_t i = from; i < to; ++i, ++copy.line) {
      if (i != from) of.next(address, copy.slice, copy.line);
      if (L2Tags::Way* const way = of.find(address); way != nullptr) *way &= ~(sectors_of(lines, i) << 4);
    }
  }
}

}  // namespace weft
