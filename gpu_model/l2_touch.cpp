// What a cache holds, without the time it took to get there: for parts of a run that are not simulated.
#include "gpu_model/l2_cache.h"

namespace weft {

double L2Cache::share_told(std::uint32_t slices) const {
  std::uint32_t told = 0;
  for (std::uint32_t slice = 0; slice < slices_count_; ++slice) told += (slice & slices) == 0 ? 1 : 0;
  return static_cast<double>(told) / slices_count_;
}

L2Cache::Touched L2Cache::touch(const Lines& lines, Use use, std::uint32_t slices) {
  const bool written = use != Use::read;
  const bool needed = use != Use::write;  // what is there is
  const L2Tags::Way owner = lines.communication ? L2Tags::kCommunication : 0;
  L2Tags& all = tags(lines.communication);
  std::uint32_t fetched = 0;  // sectors
  std::uint32_t written_back = 0;
  // `home`: else it is a copy, which only takes its place.
  const auto touch_line = [&](Place at, std::uint32_t sectors, bool home) {
    L2Tags::Address address = all.address(at.slice, at.line);
    L2Tags::Way* way = all.find(address);
    if (way == nullptr) {
      const L2Tags::Inserted inserted = all.insert(address, at.slice, at.line);
      written_back += kSectorCount[L2Tags::dirty(inserted.evicted)];
      way = inserted.way;
    }
    if (home && needed) fetched += kSectorCount[sectors & ~L2Tags::valid(*way)];
    *way |= sectors << 4;
    if (home && written) *way = (*way & ~L2Tags::kCommunication) | sectors | owner;
  };
  // All lines of a chunk, if they can be told at once.
  const auto touch_chunk = [&](Place at, bool home) {
    const L2Tags::Row row = all.row(all.address(at.slice, at.line));
    if (row.ways == nullptr) return false;
    if (const L2Tags::Lanes missing = ~*row.ways & L2Tags::kValid; home && needed && L2Tags::any(missing)) {
      for (std::uint32_t lane = 0; lane < kChunkLines; ++lane) fetched += kSectorCount[L2Tags::valid(missing[lane])];
    }
    if (L2Tags::any(row.evicted & L2Tags::kDirty)) {
      for (std::uint32_t lane = 0; lane < kChunkLines; ++lane) {
        written_back += kSectorCount[L2Tags::dirty(row.evicted[lane])];
      }
    }
    *row.ways |= L2Tags::kValid;
    if (home && written) *row.ways = (*row.ways & ~L2Tags::kCommunication) | (L2Tags::kDirty | owner);
    return true;
  };
  // Where it is not known which half a unit belongs to: every second chunk is written from the other one.
  const auto half_that_writes = [&](Place at) {
    const bool known = lines.partition != kNoPartition || lines.communication;
    return known ? lines.partition : half_of(at) ^ ((at.line >> kChunkShift) & 1U);
  };
  const auto touch_all = [&](Place first, std::uint32_t from, std::uint32_t to, bool whole, bool home) {
    if ((first.slice & slices) != 0) return;
    if (whole && touch_chunk(first, home)) return;
    for (std::uint32_t i = from; i < to; ++i) {
      touch_line({first.slice, first.line + i - from}, sectors_of(lines, i), home);
    }
  };
  Place at = place(lines.first);
  for (std::uint32_t from = 0; from < lines.count;) {
    const std::uint32_t to = std::min(lines.count, from + kChunkLines - at.line % kChunkLines);
    const Place next = place(lines.first + to);
    if (to < lines.count && (next.slice & slices) == 0) all.prefetch(next.slice, next.line);
    const bool whole = to - from == kChunkLines && sectors_of(lines, from) == 15 && sectors_of(lines, to - 1) == 15;
    if (use == Use::write && makes_copies(at, half_that_writes(at), lines.communication)) {
      touch_all(copy_of(at), from, to, whole, false);
    }
    touch_all(at, from, to, whole, true);
    from = to;
    at = next;
  }
  return {std::int64_t{fetched} * kSectorBytes, std::int64_t{written_back} * kSectorBytes};
}

}  // namespace weft
