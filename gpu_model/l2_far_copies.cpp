// Copies of the lines of one half of the L2 in the other: each half caches what the units next to it read (NVIDIA A100
// whitepaper, L2 cache), so a line that both halves read takes two places. A copy is clean; writes, atomics and updates
// take place at home, the point of coherence, and drop it. That they do is UNSOURCED; an update of the copy would
// differ by what is read again.
#include <algorithm>

#include "gpu_model/l2_cache.h"

namespace weft {

void L2Cache::read_far(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                       SubCycle spacing, Access& access) {
  L2Tags& copies = tags(lines.communication);
  const std::size_t slice_index = slice_of(copy_of(at), lines.communication);
  Slice& slice = slices_[slice_index];
  const std::uint32_t chunk = copy_of(at).line >> kChunkShift;
  Fill& fill = fills_[slice_index * kFillEntries + chunk % kFillEntries];
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
    access.done = std::max(access.done, fill.chunk == chunk ? std::max(fill.ready, slice.free) : slice.free);
    ++statistics_.hits;
  }
  fetch_before(to);
  access.done = std::max(access.done, home.done);
  access.slice_wait += home.slice_wait;
  access.held_by_cache += home.held_by_cache;
  access.held_by_hbm += home.held_by_hbm;
  access.fetched_bytes += home.fetched_bytes;
}

void L2Cache::drop_copies(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to) {
  for (const bool communication : {false, true}) {
    if (communication && !own_tags_) break;
    L2Tags& of = tags(communication);
    if (!of.much_used()) continue;
    Place copy = copy_of(at);
    L2Tags::Address address = of.address(copy.slice, copy.line);
    for (std::uint32_t i = from; i < to; ++i, ++copy.line) {
      if (i != from) of.next(address, copy.slice, copy.line);
      if (L2Tags::Way* const way = of.find(address); way != nullptr) *way &= ~(sectors_of(lines, i) << 4);
    }
  }
}

}  // namespace weft
