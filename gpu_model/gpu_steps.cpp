// Phases of collectives that are left out: see phase_repeats.h.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "sim/error.h"

namespace weft {

bool Gpu::stepping(std::vector<CollectiveSteps>& found) const {
  if (!settled()) return false;
  for (std::uint32_t i = 0; i < agents_.size(); ++i) {
    const Agent& agent = agents_[i];
    if (agent.finished || !running_[agent.kernel].communication) continue;
    if (agent.cursor == nullptr) return false;
    const double in_phase = static_cast<double>(agent.load_round) / std::max(1U, agent.rounds);
    found.push_back({.agent = i,
                     .phases = agent.phase_index + in_phase,
                     .phase = agent.phase_index,
                     .entered = clock_.to_time(agent.entered),
                     .work = work_of(agent.phase),
                     .waits = agent.waits_for_flag});
  }
  return true;
}

// Who is in no flag's list goes on by itself: when its lines have come, its fence or its poll is over.
bool Gpu::collectives_move() const {
  const auto is_one = [](const RunningKernel& kernel) { return kernel.communication; };
  return std::ranges::any_of(running_, [&](const RunningKernel& k) { return is_one(k) && k.stores_out > 0; }) ||
         std::ranges::any_of(agents_, [&](const Agent& a) {
           return is_one(running_[a.kernel]) && (a.loads_out > 0 || (!a.finished && !a.waits_for_flag));
         });
}

PhaseRepeats Gpu::repeats(std::uint32_t agent, Turn turn, std::uint64_t most) const {
  return find_repeats(agents_[agent].phase, *agents_[agent].cursor, turn, most);
}

void Gpu::leave_out_turns(std::uint32_t index, PhaseRepeats& repeats, std::uint64_t turns, SubCycle time,
                          const TouchElsewhere& elsewhere) {
  Agent& agent = agents_[index];
  const auto touch_lines = [&](const LineStream& stream, bool stored) {
    const L2Cache::Lines lines{.first = stream.first,
                               .count = stream.lines,
                               .first_sectors = stream.first_sectors,
                               .last_sectors = stream.last_sectors,
                               .partition = units_[agent.unit].partition,
                               .communication = true};
    if (stream.target != Target::local) {
      elsewhere(stream, lines, stored);
    } else {
      touch(lines, stored);
    }
  };
  const std::uint8_t waits_left = agent.phase.wait_count;
  const SubCycle delay = agent.phase.delay;
  if (repeats.cursor != nullptr && !elsewhere) {
    agent.cursor = std::move(repeats.cursor);
    agent.phase = repeats.phase;
  } else {
    for (std::uint64_t i = turns * repeats.period; i > 0; --i) {
      if (elsewhere) {
        for (std::size_t s = 0; s < agent.phase.load_count; ++s) touch_lines(agent.phase.loads[s], false);
        for (std::size_t s = 0; s < agent.phase.store_count; ++s) touch_lines(agent.phase.stores[s], true);
      }
      agent.phase = Phase{};
      WEFT_CHECK(agent.cursor->next(agent.phase), "phases that are left out are there");
    }
  }
  agent.phase_index += static_cast<std::uint32_t>(turns * repeats.period);
  agent.entered += time;
  agent.phase.wait_count = waits_left;  // those before have counted
  agent.phase.delay = delay;
  if (agent.load_stream < agent.load_count) agent.load = agent.phase.loads[agent.load_stream];
  if (agent.store_stream < agent.store_count) agent.store = agent.phase.stores[agent.store_stream];
}

void Gpu::count_left_out(std::uint32_t index, std::uint32_t by, std::uint32_t awaited) {
  Flag& flag = flags_[index];
  flag.count += by;
  for (std::uint32_t at = flag.waiter; at != WaitQueue::kNone; at = agents_[at].next_flag_waiter) {
    agents_[at].awaited += awaited;
  }
}

}  // namespace weft
