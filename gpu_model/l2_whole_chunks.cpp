// Accesses to all lines of a chunk at once: most are, and the lines share their slice, their way and their fate.
#include <algorithm>

#include "gpu_model/l2_cache.h"

namespace weft {

bool L2Cache::is_whole(const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle spacing,
                       SubCycle line_time) const {
  const bool all = to - from == kChunkLines && (from > 0 || lines.first_sectors == 15) &&
                   (to < lines.count || lines.last_sectors == 15);
  return all && spacing <= line_time && !own_tags_;
}

L2Tags::Row L2Cache::whole(const L2Tags::Address& address, const Lines& lines, std::uint32_t from, std::uint32_t to,
                           SubCycle spacing, SubCycle line_time) {
  return is_whole(lines, from, to, spacing, line_time) ? tags_.row(address) : L2Tags::Row();
}

SubCycle L2Cache::pass(Place at, const Lines& lines, std::uint32_t from, SubCycle arrival, SubCycle spacing,
                       bool writes, Access& access) {
  Slice& slice = slices_[slice_of(at, lines.communication)];
  SubCycle& port = writes ? write_port(slice) : slice.free;
  const SubCycle line_time = writes ? write_line_time_ : line_time_;
  const SubCycle start = std::max(arrival, take(slice, port, channel_of(at), arrival, lines, kChunkLines, access));
  if (from == 0) access.started = start;
  access.slice_wait += kChunkLines * (start - arrival) + (line_time - spacing) * (kChunkLines * (kChunkLines - 1) / 2);
  port = start + line_time * kChunkLines;
  access.done = std::max(access.done, port + far_latency(at, lines));
  return start;
}

void L2Cache::read_whole(Place at, const Lines& lines, const L2Tags::Row& row, std::size_t group, SubCycle start,
                         Access& access) {
  SubCycle through = start + line_time_;  // the first line
  if (!row.found) {
    bool lost_one = false;
    if (!lines.communication && !lost_.empty()) {
      for (std::uint32_t i = 0; i < kChunkLines; ++i) lost_one = lost({at.slice, at.line + i}) || lost_one;
    }
    put_out(row.evicted, at.slice, group, lines.communication, start);
    *row.ways |= L2Tags::kValid;
    fetch(at, lines, kChunkLines, kChunkLines * kSectorCount[15], through, lost_one, access);
    return;
  }
  const L2Tags::Lanes missing = ~*row.ways & L2Tags::kValid;
  const Fill& fill = fill_of(at, lines.communication);
  const SubCycle filled = fill.is_of(at.line >> kChunkShift) ? fill.ready() : 0;
  if (!L2Tags::any(missing)) {
    statistics_.hits += kChunkLines;
    if (filled > through) access.done = std::max(access.done, filled + far_latency(at, lines));
    return;
  }
  *row.ways |= L2Tags::kValid;
  SubCycle miss_from = 0;
  std::uint32_t missing_lines = 0;
  std::uint32_t missing_sectors = 0;
  for (std::uint32_t lane = 0; lane < kChunkLines; ++lane, through += line_time_) {
    if (missing[lane] != 0) {
      if (missing_lines == 0) miss_from = through;
      ++missing_lines;
      missing_sectors += kSectorCount[L2Tags::valid(missing[lane])];
    } else if (filled > through) {
      access.done = std::max(access.done, filled + far_latency(at, lines));
    }
  }
  statistics_.hits += kChunkLines - missing_lines;
  fetch(at, lines, missing_lines, missing_sectors, miss_from, false, access);
}

void L2Cache::write_whole(Place at, const Lines& lines, const L2Tags::Row& row, std::size_t group, SubCycle start) {
  if (!row.found) put_out(row.evicted, at.slice, group, lines.communication, start);
  const L2Tags::Lanes ways = *row.ways | L2Tags::kValid | L2Tags::kDirty;
  *row.ways = lines.communication ? ways | L2Tags::kCommunication : ways & ~L2Tags::kCommunication;
}

void L2Cache::put_out(L2Tags::Lanes ways, std::uint32_t slice, std::size_t group, bool communication, SubCycle start) {
  if (!L2Tags::any(communication ? ways : ways & L2Tags::kDirty)) return;
  const L2Tags::Way first = ways[0];
  if (!communication && !L2Tags::any(ways ^ first)) {  // a chunk, as it came
    const Place at{slice, tags_.line_of(slice, group, 0, first)};
    const std::uint32_t sectors = kChunkLines * kSectorCount[L2Tags::dirty(first)];
    const bool written_by_communication = (first & L2Tags::kCommunication) != 0;
    if (hbm(written_by_communication)
            .write_if_room(channel_of(at), channel_line(at), sectors, written_by_communication)) {
      if (written_by_communication) communication_write_back_bytes_ += sectors * kSectorBytes;
      return;
    }
  }
  for (std::uint32_t lane = 0; lane < kChunkLines; ++lane, start += line_time_) {
    if (ways[lane] == 0) continue;
    put_out(ways[lane], {slice, tags_.line_of(slice, group, lane, ways[lane])}, communication, start);
  }
}

}  // namespace weft
