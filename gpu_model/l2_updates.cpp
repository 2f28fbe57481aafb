// Lines that are changed where they stand: atomics in the slices, additions in memory.
#include <algorithm>

#include "gpu_model/l2_cache.h"

namespace weft {

// Line by line: each is read, and holds its slice for as long as the atomic unit takes longer than the read.
L2Cache::Access L2Cache::atomic(const Lines& lines, SubCycle now, SubCycle spacing) {
  Access all;
  const bool own = lines.communication;
  for (std::uint32_t i = 0; i < lines.count; ++i) {
    const std::uint32_t sectors = sectors_of(lines, i);
    const Lines one{.first = lines.first + i,
                    .first_sectors = sectors,
                    .last_sectors = sectors,
                    .partition = lines.partition,
                    .communication = own};
    const Place at = place(one.first);
    Access access;
    read_chunk(at, one, 0, 1, now + i * spacing, spacing, access);
    const SubCycle longer = (atomic_sector_time_ - sector_time_) * kSectorCount[sectors];
    Slice& slice = slices_[slice_of(at, own)];
    if (own) slice.ahead.add(now, slice.free, longer);
    slice.free += longer;
    L2Tags::Way& way = *find(tags(own).address(at.slice, at.line), at, own);
    way = (way & ~L2Tags::kCommunication) | sectors | (own ? L2Tags::kCommunication : 0);
    if (i == 0) all.started = access.started;
    all.done = std::max(all.done, access.done + longer);
    all.slice_wait += access.slice_wait;
    all.held_by_cache += access.held_by_cache;
    all.held_by_hbm += access.held_by_hbm;
    all.fetched_bytes += access.fetched_bytes;
  }
  return all;
}

L2Cache::Access L2Cache::update(LineAddress line, SubCycle now) {
  const Place at = place(line);
  Slice& slice = slices_[slice_of(at, true)];
  Access access;
  access.started = std::max({now, slice.free, hbm(true).accepts_from(channel_of(at))});
  access.slice_wait = access.started - now;
  slice.ahead.add(now, slice.free, sector_time_ * kSectorCount[15]);
  slice.free = access.started + sector_time_ * kSectorCount[15];
  access.done = slice.free;
  if (L2Tags::Way* const way = find(tags(true).address(at.slice, at.line), at, true); way != nullptr) {
    write_back(*way, at, access.started);
    *way &= ~(L2Tags::kCommunication | 0xFFU);  // its sectors are in memory only
  }
  hbm(true).update(channel_of(at), channel_line(at), kSectorCount[15], update_cost_, access.started);
  communication_write_back_bytes_ += kLineBytes;
  return access;
}

}  // namespace weft
