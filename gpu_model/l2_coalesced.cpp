// Requests of several units for the same lines that come together before a slice (the L2 request coalescer of Hopper,
// as NVIDIA's profilers name it). Measured on H100 (docs/validation.md, "The same lines for several units"): units that
// read the same lines at about the same time get more than the slices give of different ones. That those meet which
// wait for the slice at the same time is what is modelled; how many lines the hardware looks at is not known.
#include <algorithm>

#include "gpu_model/l2_cache.h"

namespace weft {

namespace {
// Lines [from, to) of a request as a mask of the chunk's; 0: not all of them are whole.
std::uint32_t whole_lines(const L2Cache::Lines& lines, std::uint32_t from, std::uint32_t to, std::uint32_t first) {
  const bool whole = (from > 0 || lines.first_sectors == 15) && (to < lines.count || lines.last_sectors == 15);
  return whole ? ((1U << (to - from)) - 1) << first : 0;
}
}  // namespace

bool L2Cache::joins(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                    SubCycle spacing, Access& access) {
  if (waiting_.empty() || slices_[at.slice].free <= arrival) return false;
  const std::uint32_t chunk = at.line >> kChunkShift;
  const Waiting& other = waiting_[at.slice * kWaitingEntries + chunk % kWaitingEntries];
  const std::uint32_t asked = whole_lines(lines, from, to, at.line % kChunkLines);
  if (other.chunk != chunk || other.ready <= arrival || asked == 0 || (asked & ~other.lines) != 0) return false;
  take_requests(slices_[at.slice], to - from, arrival);
  if (from == 0) access.started = arrival;
  access.slice_wait += (other.ready - arrival) * (to - from);
  const Fill& fill = fills_[at.slice * kFillEntries + chunk % kFillEntries];
  SubCycle done = std::max(other.ready, arrival + spacing * (to - from - 1));
  if (fill.is_of(chunk)) done = std::max(done, fill.ready());
  access.done = std::max(access.done, done + far_latency(at, lines));
  statistics_.hits += to - from;
  return true;
}

void L2Cache::await(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to) {
  if (waiting_.empty()) waiting_.resize(std::size_t{slices_count_} * kWaitingEntries);
  const std::uint32_t chunk = at.line >> kChunkShift;
  const std::uint32_t asked = whole_lines(lines, from, to, at.line % kChunkLines);
  if (asked == 0) return;
  waiting_[at.slice * kWaitingEntries + chunk % kWaitingEntries] = {slices_[at.slice].free, chunk, asked};
}

}  // namespace weft
