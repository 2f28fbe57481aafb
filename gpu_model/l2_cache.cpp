#include "gpu_model/l2_cache.h"

#include <algorithm>
#include <bit>

#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kRotations = 256;
constexpr std::uint32_t kLostLines = 4096;  // of a slice, as many as an A100's holds
std::uint32_t sets_of_slice(const L2Spec& spec) {
  return static_cast<std::uint32_t>(spec.bytes / (std::int64_t{spec.slices} * spec.ways * kLineBytes));
}
constexpr std::int64_t kRound = 8;  // lines: no chunk holds two slices' numbers
std::int64_t lines_of_slice(const L2Spec& spec, const HbmSpec& hbm) {
  return (hbm.bytes / kLineBytes / spec.slices + kRound) / kRound * kRound;
}
// Copies of lines have numbers of their own.
std::int64_t numbers_of_slice(const L2Spec& spec, const HbmSpec& hbm) {
  return lines_of_slice(spec, hbm) * (spec.far_copies ? 2 : 1);
}
}  // namespace

bool L2Cache::tags_reach(const L2Spec& spec, const HbmSpec& hbm) {
  return L2Tags::reach(sets_of_slice(spec), numbers_of_slice(spec, hbm));
}

std::int64_t L2Cache::most_lines_per_slice(const L2Spec& spec) { return L2Tags::most_lines(sets_of_slice(spec)); }

L2Cache::L2Cache(const L2Spec& spec, const HbmSpec& hbm, Frequency clock)
    : slices_count_(spec.slices),
      slices_inverse_(~std::uint64_t{0} / spec.slices + 1),
      far_slices_from_(spec.slices / 2),
      far_latency_(cycles(std::int64_t{spec.far_latency_cycles})),
      lines_of_slice_(static_cast<std::uint32_t>(lines_of_slice(spec, hbm))),
      far_copies_(spec.far_copies),
      coalesces_(spec.coalesces_reads),
      channel_shift_(
          hbm.channels > spec.slices ? static_cast<std::uint32_t>(std::countr_zero(hbm.channels / spec.slices)) : 0),
      channel_mask_((1U << channel_shift_) - 1),
      slices_of_channel_(std::max(spec.slices / hbm.channels, 1U)),
      sector_time_(cycles(static_cast<double>(kSectorBytes) / spec.bytes_per_cycle)),
      line_time_(sector_time_ * kSectorCount[15]),
      writes_apart_(spec.write_bytes_per_cycle > 0),
      write_sector_time_(writes_apart_ ? cycles(static_cast<double>(kSectorBytes) / spec.write_bytes_per_cycle)
                                       : sector_time_),
      write_line_time_(write_sector_time_ * kSectorCount[15]),
      request_time_(writes_apart_ ? cycles(static_cast<double>(spec.read_request_bytes) / spec.write_bytes_per_cycle)
                                  : 0),
      atomic_sector_time_(
          std::max(sector_time_, cycles(static_cast<double>(kSectorBytes) / spec.atomic_bytes_per_cycle))),
      slices_(spec.slices),
      fills_(std::size_t{spec.slices} * kFillEntries),
      tags_(spec.slices, sets_of_slice(spec), spec.ways, numbers_of_slice(spec, hbm), kChunkShift),
      hbm_(hbm, clock),
      page_table_(spec.tlb),
      full_clock_{sector_time_, write_sector_time_, request_time_, atomic_sector_time_, far_latency_} {
  WEFT_CHECK(spec.slices >= 2 && spec.slices <= 256, "2 to 256 L2 slices");
  WEFT_CHECK(!spec.far_copies || spec.slices % 2 == 0, "two halves of an L2 with copies");
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
  return {slice, local << kChunkShift | (line & (kChunkLines - 1))};
}

LineAddress L2Cache::address(Place at) const {
  const std::uint32_t local = at.line >> kChunkShift;
  const std::uint32_t turned = at.slice + slices_count_ - rotation_[local % kRotations];
  const std::uint32_t of_round = turned >= slices_count_ ? turned - slices_count_ : turned;
  return (local * slices_count_ + of_round) << kChunkShift | (at.line & (kChunkLines - 1));
}

void L2Cache::prefetch(LineAddress first, std::uint32_t count) const {
  for (std::uint32_t done = 0; done < count;) {
    const Place at = place(first + done);
    const std::uint32_t lines = std::min(count - done, kChunkLines - at.line % kChunkLines);
    tags_.prefetch(at.slice, at.line);
    hbm_.prefetch(channel_of(at));
    prefetch_line(&slices_[at.slice]);
    prefetch_line(&fills_[at.slice * kFillEntries + (at.line >> kChunkShift) % kFillEntries]);
    done += lines;
  }
}

void L2Cache::set_stretch(Stretch stretch) {
  sector_time_ = stretch(full_clock_.sector);
  line_time_ = sector_time_ * kSectorCount[15];
  write_sector_time_ = stretch(full_clock_.write_sector);
  write_line_time_ = write_sector_time_ * kSectorCount[15];
  request_time_ = stretch(full_clock_.request);
  atomic_sector_time_ = stretch(full_clock_.atomic_sector);
  far_latency_ = stretch(full_clock_.far_latency);
  page_table_.set_stretch(stretch);
}

L2Tags::Way* L2Cache::find(const L2Tags::Address& address, Place at, bool communication) {
  L2Tags::Way* const found = tags(communication).find(address);
  if (found != nullptr || !own_tags_) return found;
  L2Tags& others = tags(!communication);
  return others.find(others.address(at.slice, at.line));
}

L2Tags::Way& L2Cache::allocate(L2Tags::Address& address, Place at, bool communication, SubCycle now) {
  const L2Tags::Inserted inserted = tags(communication).insert(address, at.slice, at.line);
  if (inserted.evicted != 0) put_out(inserted.evicted, {at.slice, inserted.evicted_line}, communication, now);
  return *inserted.way;
}

void L2Cache::put_out(L2Tags::Way way, Place at, bool communication, SubCycle now) {
  if (communication && !own_tags_) {
    if (lost_.empty()) lost_.resize(std::size_t{slices_count_} * kLostLines);
    lost_[std::size_t{at.slice} * kLostLines + at.line % kLostLines] = at.line + 1;
  }
  write_back(way, at, now);
}

bool L2Cache::lost(Place at) {
  if (lost_.empty()) return false;
  std::uint32_t& place = lost_[std::size_t{at.slice} * kLostLines + at.line % kLostLines];
  if (place != at.line + 1) return false;
  place = 0;
  return true;
}

void L2Cache::write_back(L2Tags::Way way, Place at, SubCycle now) {
  if (L2Tags::dirty(way) == 0) return;
  const std::uint32_t sectors = kSectorCount[L2Tags::dirty(way)];
  const bool communication = (way & L2Tags::kCommunication) != 0;
  hbm(communication).write(channel_of(at), channel_line(at), sectors, now, communication);
  if (communication) communication_write_back_bytes_ += sectors * kSectorBytes;
}

void L2Cache::rest() {
  std::fill(slices_.begin(), slices_.end(), Slice{});
  std::fill(fills_.begin(), fills_.end(), Fill{});
  std::fill(waiting_.begin(), waiting_.end(), Waiting{});
  statistics_ = {};
  lost_.clear();
  communication_write_back_bytes_ = 0;
  hbm_.rest();
  page_table_.rest();
}

L2Cache::Access L2Cache::read(const Lines& lines, SubCycle now, SubCycle spacing) {
  Access access;
  for (std::uint32_t from = 0; from < lines.count;) {
    const Place at = place(lines.first + from);
    const std::uint32_t to = std::min(lines.count, from + kChunkLines - at.line % kChunkLines);
    const SubCycle arrival = now + from * spacing;
    const bool may_join = coalesces_ && !lines.communication;  // a collective's blocks have lines of their own
    if (!may_join || !joins(at, lines, from, to, arrival, spacing, access)) {
      read_chunk(at, lines, from, to, arrival, spacing, access);
      if (may_join) await(at, lines, from, to);
    }
    from = to;
  }
  return access;
}

void L2Cache::read_chunk(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                         SubCycle spacing, Access& access) {
  Slice& slice = slices_[slice_of(at, lines.communication)];
  take_requests(slice, to - from, arrival);
  L2Tags::Address address = tags(lines.communication).address(at.slice, at.line);
  if (const L2Tags::Row row = whole(address, lines, from, to, spacing, line_time_); row.ways != nullptr) {
    read_whole(at, lines, row, address.group, pass(at, lines, from, arrival, spacing, false, access), access);
    return;
  }
  const Place first = at;
  const std::uint32_t chunk = at.line >> kChunkShift;
  const SubCycle far = far_latency(at, lines);
  const Fill& fill = fill_of(at, lines.communication);
  SubCycle free = take(slice, slice.free, channel_of(at), arrival, lines, to - from, access);
  SubCycle miss_from = 0;
  bool lost_one = false;
  std::uint32_t missing_lines = 0;
  std::uint32_t missing_sectors = 0;
  for (std::uint32_t i = from; i < to; ++i, ++at.line, arrival += spacing) {
    if (i != from) tags(lines.communication).next(address, at.slice, at.line);
    const std::uint32_t sectors = sectors_of(lines, i);
    const SubCycle start = std::max(arrival, free);
    if (i == 0) access.started = start;
    access.slice_wait += start - arrival;
    free = start + sector_time_ * kSectorCount[sectors];
    L2Tags::Way* const found = find(address, at, lines.communication);
    if (found == nullptr && !lines.communication) lost_one = lost(at) || lost_one;
    L2Tags::Way& way = found != nullptr ? *found : allocate(address, at, lines.communication, start);
    const std::uint32_t missing = sectors & ~L2Tags::valid(way);
    if (missing != 0) {
      way |= missing << 4;
      if (missing_lines == 0) miss_from = free;
      ++missing_lines;
      missing_sectors += kSectorCount[missing];
    } else if (fill.is_of(chunk) && fill.ready() > free) {
      access.done = std::max(access.done, fill.ready() + far);
    }
  }
  slice.free = free;
  access.done = std::max(access.done, free + far);
  statistics_.hits += to - from - missing_lines;
  if (missing_lines > 0) fetch(first, lines, missing_lines, missing_sectors, miss_from, lost_one, access);
}

void L2Cache::fetch(Place at, const Lines& lines, std::uint32_t missing_lines, std::uint32_t missing_sectors,
                    SubCycle from, bool lost_one, Access& access) {
  statistics_.misses += missing_lines;
  const Hbm::Read fetched =
      hbm(lines.communication).read(channel_of(at), channel_line(at), missing_sectors, from, lines.communication);
  if (lost_one) {
    access.held_by_cache += static_cast<double>((fetched.done - from) * missing_lines);
  } else {
    access.held_by_hbm += fetched.held * missing_lines;
  }
  access.done = std::max(access.done, fetched.done + far_latency(at, lines));
  access.fetched_bytes += missing_sectors * kSectorBytes;
  fill_of(at, lines.communication) = Fill(at.line >> kChunkShift, fetched.done);
}

SubCycle L2Cache::take(Slice& slice, SubCycle free, std::uint32_t channel, SubCycle arrival, const Lines& lines,
                       std::uint32_t count, Access& access) {
  Hbm& memory = hbm(lines.communication);
  const SubCycle accepts = memory.accepts_from(channel);
  const SubCycle by_hbm = std::max<SubCycle>(accepts - std::max(arrival, free), 0);
  const double communication = memory.communication_ahead(channel, arrival);
  if (lines.communication) {
    slice.ahead.add(arrival, free, sector_time_ * kSectorCount[15] * count);
  } else {
    const SubCycle by_slice = std::max<SubCycle>(free - arrival, 0);
    if (const double share = slice.ahead.share(arrival, free); share > 0) {
      access.held_by_cache += share * static_cast<double>(by_slice) * count;
    }
    if (communication > 0) {  // its own wait for HBM, and those of the requests ahead of it
      const double stalls = slice.stalls.share(arrival, free) * static_cast<double>(by_slice);
      access.held_by_hbm += communication * (stalls + static_cast<double>(by_hbm)) * count;
    }
  }
  if (communication > 0 && by_hbm > 0) slice.stalls.add(arrival, free, by_hbm);
  return std::max(free, accepts);
}

L2Cache::Access L2Cache::write(const Lines& lines, SubCycle now, SubCycle spacing) {
  Access access;
  for (std::uint32_t from = 0; from < lines.count;) {
    const Place at = place(lines.first + from);
    const std::uint32_t to = std::min(lines.count, from + kChunkLines - at.line % kChunkLines);
    write_chunk(at, lines, from, to, now + from * spacing, spacing, access);
    from = to;
  }
  return access;
}

void L2Cache::write_chunk(Place at, const Lines& lines, std::uint32_t from, std::uint32_t to, SubCycle arrival,
                          SubCycle spacing, Access& access) {
  if (makes_copies(at, lines.partition, lines.communication)) write_copies(at, lines, from, to, arrival);
  L2Tags::Address address = tags(lines.communication).address(at.slice, at.line);
  if (const L2Tags::Row row = whole(address, lines, from, to, spacing, write_line_time_); row.ways != nullptr) {
    write_whole(at, lines, row, address.group, pass(at, lines, from, arrival, spacing, true, access));
    return;
  }
  const SubCycle far = far_latency(at, lines);
  const L2Tags::Way owner = lines.communication ? L2Tags::kCommunication : 0;
  Slice& slice = slices_[slice_of(at, lines.communication)];
  SubCycle& port = write_port(slice);
  SubCycle free = take(slice, port, channel_of(at), arrival, lines, to - from, access);
  for (std::uint32_t i = from; i < to; ++i, ++at.line, arrival += spacing) {
    if (i != from) tags(lines.communication).next(address, at.slice, at.line);
    const std::uint32_t sectors = sectors_of(lines, i);
    const SubCycle start = std::max(arrival, free);
    if (i == 0) access.started = start;
    access.slice_wait += start - arrival;
    free = start + write_sector_time_ * kSectorCount[sectors];
    L2Tags::Way* const found = find(address, at, lines.communication);
    L2Tags::Way& way = found != nullptr ? *found : allocate(address, at, lines.communication, start);
    way = (way & ~L2Tags::kCommunication) | sectors << 4 | sectors | owner;
  }
  port = free;
  access.done = std::max(access.done, free + far);
}

}  // namespace weft
