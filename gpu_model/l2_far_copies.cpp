// Lines that the units next to one half of the L2 write and that live in the other half: they take a place in both.
// Each half caches for its own units (NVIDIA A100 whitepaper, L2 cache), but which lines are held twice is not
// published. Measured on H100 and H200 (docs/validation.md, What the L2 holds): lines that are read fill the whole L2
// before one is lost, whichever units read them; lines that are written two thirds of it, as if half of them were there
// twice. Here a copy only takes its place, and goes when it was not written for long: data are read at home.
#include "gpu_model/l2_cache.h"

namespace weft {

void L2Cache::write_copies(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle now) {
  L2Tags& of = tags(lines.communication);
  Place copy = copy_of(at);
  const L2Tags::Address address = of.address(copy.slice, copy.line);
  if (to - from == kChunkLines) {
    if (const L2Tags::Row row = of.row(address); row.ways != nullptr) {
      if (!row.found) put_out(row.evicted, copy.slice, address.group, lines.communication, now);
      *row.ways |= L2Tags::kValid;
      return;
    }
  }
  for (; from < to; ++from, ++copy.line) {
    L2Tags::Address one = of.address(copy.slice, copy.line);
    L2Tags::Way* const found = find(one, copy, lines.communication);
    (found != nullptr ? *found : allocate(one, copy, lines.communication, now)) |= L2Tags::kValid;
  }
}

}  // namespace weft
