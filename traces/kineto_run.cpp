#include "traces/kineto_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/error.h"
#include "traces/clock_alignment.h"
#include "traces/kineto_rank.h"
#include "traces/same_run.h"

namespace weft {
namespace {

// Ranks whose collectives end farther apart have clocks of their own. On one host they end within 7 us of each other
// (DLRM on eight V100, docs/validation.md), while NTP keeps hosts of a local network within a millisecond (ntp.org,
// "How NTP works"): between both.
const Time kSameClock = microseconds(100);

}  // namespace

void KinetoRun::add(const KinetoFile& file, bool alone, const ExecutionJoin* execution) {
  see_world(file);
  const std::vector<std::int64_t> devices = used_devices(file, notes_);
  // One process may drive several GPUs, but then it is no rank of a distributed run.
  if (devices.size() > 1 && (file.rank || !alone))
    throw InputError(file.name, "",
                     fmt::format("expected one GPU for each rank, got a process that works on devices {}",
                                 fmt::join(devices, ", ")));
  for (const std::int64_t device : devices) {
    const std::int64_t rank = file.rank.value_or(static_cast<std::int64_t>(parts_.size()));
    if (rank < 0 || rank >= file.world_size.value_or(kMaxWorld))
      throw InputError(file.name, "/distributedInfo/rank",
                       "expected a rank below the world size " + std::to_string(file.world_size.value_or(kMaxWorld)) +
                           ", got " + std::to_string(rank));
    for (const Part& other : parts_)
      if (other.rank.rank == rank)
        throw InputError(file.name, "/distributedInfo/rank",
                         "expected each rank once, got rank " + std::to_string(rank) + " as in " + other.file);
    seen_world_ = std::max(seen_world_, rank + 1);
    Part& part = parts_.emplace_back(Part{file.name, earliest_time(file), {}, {}});
    part.rank = kineto_rank(file, static_cast<std::uint32_t>(rank), device, execution, &part.exchanges);
  }
}

Trace KinetoRun::finish(std::string source) {
  Trace trace;
  trace.source = std::move(source);
  trace.world_size = world_size();
  const std::string first = parts_.front().file;
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const Part& part : parts_) origin = std::min(origin, part.origin);
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.rank.rank < b.rank.rank; });
  std::vector<std::vector<PeerKernel>> exchanges;
  // Clocks that tell other times, as of hosts that count from when they started, say nothing: each rank is from its own
  // beginning, until its collectives tell.
  const auto apart =
      std::ranges::find_if(parts_, [&](const Part& part) { return !can_shift(part.rank, part.origin - origin); });
  const std::string late_file = apart == parts_.end() ? "" : apart->file;
  const std::int64_t late_s = apart == parts_.end() ? 0 : (apart->origin - origin) / 1'000'000'000;
  for (Part& part : parts_) {
    if (late_file.empty()) shift_times(part.rank, part.origin - origin, part.file);
    trace.ranks.push_back(std::move(part.rank));
    exchanges.push_back(std::move(part.exchanges));
  }
  join_exchanges(exchanges, trace);
  validate(trace, first);
  align_clocks(trace, notes_, late_file.empty() ? kSameClock : Time());
  if (late_file.empty()) return trace;
  if (const std::string against = against_one_run(trace, kSameClock); !against.empty())
    throw InputError(
        late_file, "",
        fmt::format("expected ranks of one run, that lie within 2.5 hours or have two collectives and more "
                    "that end within {:.0f} us of each other, got one that begins {} s after the first, and {}",
                    to_microseconds(kSameClock), late_s, against));
  notes_.push_back(fmt::format("clocks of ranks were up to {} s apart: joined by their collectives alone", late_s));
  return trace;
}

// The largest world that any file's distributedInfo or collectives speak of.
void KinetoRun::see_world(const KinetoFile& file) {
  if (file.world_size) {
    if (*file.world_size < 1 || *file.world_size > kMaxWorld)
      throw InputError(file.name, "/distributedInfo/world_size",
                       "expected from 1 to 2^24, got " + std::to_string(*file.world_size));
    if (stated_world_ != 0 && stated_world_ != *file.world_size)
      throw InputError(file.name, "/distributedInfo/world_size",
                       "expected the ranks of one run (world size " + std::to_string(stated_world_) + "), got " +
                           std::to_string(*file.world_size));
    stated_world_ = *file.world_size;
  }
  for (const KinetoEvent& e : file.events) {
    if (!e.collective) continue;
    seen_world_ = std::max(seen_world_, e.collective->group_size.value_or(0));
    if (e.collective->group_ranks)
      for (const std::int64_t rank : *e.collective->group_ranks) seen_world_ = std::max(seen_world_, rank + 1);
  }
}

std::uint32_t KinetoRun::world_size() const {
  const auto parts = static_cast<std::int64_t>(parts_.size());
  if (stated_world_ != 0 && parts > stated_world_)
    throw InputError(parts_.front().file, "/distributedInfo/world_size",
                     "expected at least as many ranks as files (" + std::to_string(parts) + "), got " +
                         std::to_string(stated_world_));
  return static_cast<std::uint32_t>(stated_world_ != 0 ? stated_world_ : std::min(seen_world_, kMaxWorld));
}

}  // namespace weft
