#include "gpu_model/phase_repeats.h"

#include <algorithm>

namespace weft {

namespace {

// Some hundred million phases may be compared: one multiplication a value (Fibonacci hashing).
void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 32U;
}

void mix(std::uint64_t& hash, const LineStream& stream) {
  mix(hash, std::uint64_t{stream.lines} << 32U | stream.arrival_flag);
  mix(hash, std::uint64_t{stream.gpu} << 32U | static_cast<std::uint64_t>(stream.target) << 16U |
                static_cast<std::uint64_t>(stream.adds) << 8U | static_cast<std::uint64_t>(stream.first_sectors) << 4U |
                stream.last_sectors);
}

bool move_the_same(const Phase& a, const Phase& b) {
  const auto same = [](const auto& x, const auto& y, std::size_t count) {
    return std::equal(x.begin(), x.begin() + count, y.begin(), [](const LineStream& s, const LineStream& t) {
      return s.lines == t.lines && s.target == t.target;
    });
  };
  return a.rounds == b.rounds && a.compute == b.compute && a.load_count == b.load_count &&
         a.store_count == b.store_count && same(a.loads, b.loads, a.load_count) &&
         same(a.stores, b.stores, a.store_count);
}

std::uint64_t all_of(const Phase& phase) {
  std::uint64_t hash = work_of(phase);
  mix(hash, static_cast<std::uint64_t>(phase.delay));
  mix(hash, static_cast<std::uint64_t>(phase.post_delay) + phase.post_delay_phases);
  for (std::size_t i = 0; i < phase.wait_count; ++i) mix(hash, phase.waits[i].flag);
  return hash;
}

// What a phase does, whichever flags are for it.
std::uint64_t role_of(const Phase& phase) {
  auto hash = static_cast<std::uint64_t>(phase.compute);
  mix(hash, std::uint64_t{phase.rounds} << 32U | phase.stages);
  const auto mix_streams = [&](const auto& streams, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      mix(hash, std::uint64_t{streams[i].lines} << 8U | static_cast<std::uint64_t>(streams[i].target));
  };
  mix_streams(phase.loads, phase.load_count);
  mix_streams(phase.stores, phase.store_count);
  for (std::size_t i = 0; i < phase.post_count; ++i) mix(hash, static_cast<std::uint64_t>(phase.posts[i].target) + 1);
  mix(hash, phase.wait_count);
  return hash;
}

bool can_be_left_out(const Phase& phase) {
  for (std::size_t i = 0; i < phase.store_count; ++i) {
    const LineStream& store = phase.stores.at(i);
    if (store.target == Target::tree || (store.adds && store.target != Target::local)) return false;
  }
  for (std::size_t i = 0; i < phase.post_count; ++i) {
    if (phase.posts.at(i).target == Target::launch) return false;
  }
  return true;
}

// In phases, of the first `length` that were seen; or 0.
std::uint32_t period_of(const std::vector<std::uint64_t>& seen, std::size_t length) {
  const auto end = seen.begin() + static_cast<std::ptrdiff_t>(length);
  for (std::uint32_t p = 1; p <= kLongestTurn && 2 * p <= length; ++p) {
    if (std::equal(seen.begin() + p, end, seen.begin())) return p;
  }
  return 0;
}

// Of the longest beginning that is alike: not all that was seen need be.
std::uint32_t loop_of(const std::vector<std::uint64_t>& seen) {
  std::uint32_t period = 0;
  for (std::size_t length = seen.size(); length >= 2 && period == 0; length /= 2) period = period_of(seen, length);
  return period;
}

// Of the shortest beginning that is alike.
std::uint32_t step_of(const std::vector<std::uint64_t>& seen) {
  std::uint32_t period = 0;
  for (std::size_t length = 2; length <= seen.size() && period == 0; length += 2) period = period_of(seen, length);
  return period;
}

void note_counts(const Phase& phase, PhaseRepeats& repeats) {
  for (std::size_t i = 0; i < phase.post_count; ++i) {
    const FlagPost& post = phase.posts.at(i);
    repeats.counts.push_back({post.target, post.gpu, post.flag, 1});
  }
  for (std::size_t i = 0; i < phase.store_count; ++i) {
    const LineStream& store = phase.stores.at(i);
    if (store.arrival_flag != kNoFlag) {
      repeats.counts.push_back({store.target, store.gpu, store.arrival_flag, store.lines});
    }
    if (store.target != Target::local) repeats.remote_lines += store.lines;
  }
  for (std::size_t i = 0; i < phase.load_count; ++i) {
    if (phase.loads.at(i).target != Target::local) repeats.remote_lines += phase.loads.at(i).lines;
  }
}

void note_waits(const Phase& phase, const Phase& turn_later, PhaseRepeats& repeats) {
  for (std::size_t i = 0; i < phase.wait_count; ++i) {
    const FlagWait& wait = phase.waits.at(i);
    repeats.waits.push_back({wait.flag, turn_later.waits.at(i).value - wait.value, wait.value});
  }
  for (std::size_t i = 0; i < phase.load_count; ++i) {
    const LineStream& load = phase.loads.at(i);
    if (load.arrival_flag == kNoFlag) continue;
    const std::uint32_t before = load.arrived_before;
    repeats.waits.push_back({load.arrival_flag, turn_later.loads.at(i).arrived_before - before, before});
  }
}

}  // namespace

std::uint64_t work_of(const Phase& phase) {
  auto hash = static_cast<std::uint64_t>(phase.compute);
  mix(hash, std::uint64_t{phase.rounds} << 32U | phase.stages);
  mix(hash, static_cast<std::uint64_t>(phase.fence) << 1U | static_cast<std::uint64_t>(phase.fenced));
  mix(hash, std::uint64_t{phase.load_count} << 16U | std::uint64_t{phase.store_count} << 8U | phase.post_count);
  for (std::size_t i = 0; i < phase.load_count; ++i) mix(hash, phase.loads[i]);
  for (std::size_t i = 0; i < phase.store_count; ++i) mix(hash, phase.stores[i]);
  for (std::size_t i = 0; i < phase.post_count; ++i) {
    const FlagPost& post = phase.posts[i];
    mix(hash,
        std::uint64_t{post.flag} << 32U | std::uint64_t{post.gpu} << 8U | static_cast<std::uint64_t>(post.target));
  }
  return hash;
}

PhaseRepeats find_repeats(const Phase& phase, const PhaseCursor& cursor, Turn turn, std::uint64_t most) {
  PhaseRepeats repeats;
  std::unique_ptr<PhaseCursor> ahead = cursor.clone();
  Phase found;
  const auto next = [&] {
    found = Phase{};
    return ahead->next(found) && can_be_left_out(found);
  };
  std::vector<Phase> first;
  std::vector<std::uint64_t> seen;
  while (seen.size() < std::size_t{2} * kLongestTurn && next()) {
    first.push_back(found);
    seen.push_back(all_of(found));
  }
  const std::uint32_t period = turn == Turn::loop ? loop_of(seen) : step_of(seen);
  if (period == 0 || work_of(phase) != work_of(first[period - 1])) return repeats;
  std::uint64_t alike = period;
  while (alike < seen.size() && seen[alike] == seen[alike % period]) ++alike;
  if (alike == seen.size()) {
    while (alike < most * period && next() && all_of(found) == seen[alike % period]) ++alike;
    if (alike == most * period && alike > seen.size()) {
      repeats.cursor = std::move(ahead);
      repeats.phase = found;
    }
  }
  repeats.period = period;
  repeats.turns = alike / period;
  for (std::uint32_t i = 0; i < period; ++i) {
    repeats.kind += seen[i];
    repeats.role += role_of(first[i]);
    repeats.even = repeats.even && move_the_same(first[i], first[0]);
    repeats.works.push_back(work_of(first[i]));
    note_counts(first[i], repeats);
    note_waits(first[i], first[i + period], repeats);
  }
  std::ranges::sort(repeats.works);
  repeats.works.erase(std::ranges::unique(repeats.works).begin(), repeats.works.end());
  return repeats;
}

}  // namespace weft
