// Kernels beside collectives, and several kernels: what of them is left out between two windows (steady_kernels.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gpu_model/convoys.h"
#include "gpu_model/gpu.h"

namespace weft {

namespace {
constexpr double kStepsTogether = 64;  // in which rounds are left out together
// What a block shares with others, if it shares anything: the first line of its longest operand.
LineAddress longest_load(const Agent& agent) {
  const auto* loads = agent.phase.loads.begin();
  const auto* longest = std::max_element(loads, loads + agent.load_count,
                                         [](const LineStream& a, const LineStream& b) { return a.lines < b.lines; });
  return agent.load_count > 0 ? longest->first : 0;
}
}  // namespace

// Nothing of the host is due, and all that runs are collectives and kernels in the middle.
bool Gpu::settled() const {
  if (control_due_ > 0 || !flushing_.empty() || work_.values != nullptr) return false;
  return std::all_of(active_.begin(), active_.end(), [this](std::uint32_t slot) {
    const RunningKernel& kernel = running_[slot];
    // What a kernel pushes meets what others do: nothing of that is left out.
    return kernel.communication || kernel.timed ||
           (kernel.program && kernel.pushed == nullptr && kernel.blocks_done < kernel.blocks);
  });
}

bool Gpu::working(std::vector<KernelWork>& found) const {
  if (!settled()) return false;
  if (work_.skip_waves && active_.size() == 1 && collectives_ == 0) return false;  // it leaves out waves by itself
  const std::size_t first = found.size();
  for (const std::uint32_t slot : active_) {
    const RunningKernel& kernel = running_[slot];
    if (kernel.communication || kernel.timed) continue;
    const std::uint64_t resident = kernel.begun() - kernel.blocks_done;
    KernelWork work{.slot = slot, .sequence = kernel.sequence};
    work.rounds = kernel.program->phase(0, 0).rounds;
    work.resident = resident;
    work.done = static_cast<double>(kernel.blocks_done) * work.rounds;
    work.blocks_ahead = kernel.program->persistent() ? 0 : kernel.blocks - kernel.begun();
    work.turn = static_cast<double>(rounds_of_turn(*kernel.program, resident));
    found.push_back(work);
  }
  for (const Agent& agent : agents_) {
    if (agent.finished || running_[agent.kernel].communication) continue;
    for (std::size_t i = first; i < found.size(); ++i) {
      if (found[i].slot != agent.kernel) continue;
      found[i].done += agent.phase_index > 0 ? found[i].rounds : agent.computed;
    }
  }
  return true;
}

KernelLedger Gpu::ledger(OpId op) const {
  KernelLedger ledger = ledgers_[op.value];
  if (times()[op.value].end >= 0) return ledger;
  for (const Agent& agent : agents_) {
    if (agent.finished || running_[agent.kernel].op != op || running_[agent.kernel].communication) continue;
    const Block& block = blocks_[agent.block];
    const SubCycle stall = block.stall + now() - block.start - agent.pipe_time;
    if (static_cast<double>(stall) <= ledger.stall) continue;
    ledger.stall = static_cast<double>(stall);
    ledger.held_by_pipe = block.held_by_pipe;
    ledger.slow_clock = block.slow_clock;
  }
  return ledger;
}

// How fast each block goes: those that share a unit with fewer others are faster, and the youngest may wait for them.
void Gpu::note_rounds() {
  round_rates_.resize(agents_.size());
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    const Agent& agent = agents_[i];
    RoundRate& rate = round_rates_[i];
    const std::uint32_t kernel = running_[agent.kernel].sequence;
    const std::uint32_t company = units_[agent.unit].company;
    if (agent.finished || rate.is_of(kernel, agent.block_number, company)) continue;
    rate = {
        .kernel = kernel, .block = agent.block_number, .company = company, .since = now(), .computed = agent.computed};
  }
}

// Each block that runs gets a part of `rounds` as its rate says: how many times they may be left out until the first
// one is at its end; 0: a rate is not known.
double Gpu::share_rounds(std::uint32_t slot, double rounds) {
  const auto is_part = [&](std::size_t i) { return !agents_[i].finished && agents_[i].kernel == slot; };
  std::vector<std::size_t> by_age;
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (is_part(i)) by_age.push_back(i);
  }
  std::sort(by_age.begin(), by_age.end(), [this](std::size_t a, std::size_t b) {
    return std::pair(agents_[a].unit, agents_[a].block_number) < std::pair(agents_[b].unit, agents_[b].block_number);
  });
  std::vector<Convoys::Place> places(agents_.size());
  for (std::size_t n = 0; n < by_age.size(); ++n) {
    const Agent& agent = agents_[by_age[n]];
    const Unit& unit = units_[agent.unit];
    Convoys::Place& place = places[by_age[n]];
    place = {.crowd = 2 * unit.compute_blocks + (unit.communication_blocks > 0 ? 1 : 0), .stream = longest_load(agent)};
    if (n > 0 && agents_[by_age[n - 1]].unit == agent.unit) place.older = places[by_age[n - 1]].older + 1;
  }
  Convoys convoys;
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (!is_part(i)) continue;
    const Agent& agent = agents_[i];
    if (i >= round_rates_.size()) return 0;
    const RoundRate& rate = round_rates_[i];
    const bool known = rate.is_of(running_[slot].sequence, agent.block_number, units_[agent.unit].company);
    if (!known || agent.phase_index != 0 || rate.since == now()) return 0;
    convoys.add(places[i], agent.computed - rate.computed, static_cast<double>(now() - rate.since));
  }
  double all = 0;
  for (std::size_t i = 0; i < agents_.size(); ++i) all += is_part(i) ? convoys.rate(places[i]) : 0;
  if (all <= 0) return 0;
  auto times = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (!is_part(i)) continue;
    RoundRate& rate = round_rates_[i];
    rate.rounds = convoys.rate(places[i]) * rounds / all;
    rate.carried = 0.5;
    // Rounds that load nothing start before the cursor of loads comes to them.
    const double left = static_cast<double>(agents_[i].rounds) - std::max(agents_[i].load_round, agents_[i].started);
    if (rate.rounds > 0) times = std::min(times, left / rate.rounds);
  }
  return times;
}

// Blocks that stream the same lines count as one.
std::int64_t Gpu::streams_of(std::uint32_t slot) const {
  std::vector<LineAddress> streams;
  for (const Agent& agent : agents_) {
    if (agent.finished || agent.kernel != slot) continue;
    for (std::uint32_t s = 0; s < agent.load_count; ++s) streams.push_back(agent.phase.loads[s].first);
    for (std::uint32_t s = 0; s < agent.store_count; ++s) streams.push_back(agent.phase.stores[s].first);
  }
  std::sort(streams.begin(), streams.end());
  return std::max<std::int64_t>(1, std::unique(streams.begin(), streams.end()) - streams.begin());
}

// What was shared, so many times: the rounds that are left out, and what they move.
std::uint64_t Gpu::leave_out_shared(std::uint32_t slot, double times, Told telling, L2Cache::Touched& moved) {
  std::uint32_t most_lines = telling == Told::all ? ~std::uint32_t{0} : 0;  // of each stream
  if (telling == Told::last) {
    most_lines = static_cast<std::uint32_t>(WaveSkip::kFills * spec_.l2.bytes / kLineBytes / streams_of(slot));
  }
  ToldLines told;
  std::uint64_t all = 0;
  // All blocks go on together: what one touches again, it touches soon after the others.
  const double steps = std::clamp(std::ceil(times), 1.0, kStepsTogether);
  for (double step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (agents_[i].finished || agents_[i].kernel != slot) continue;
      RoundRate& rate = round_rates_[i];
      rate.carried += rate.rounds * times / steps;
      const auto rounds = static_cast<std::uint32_t>(rate.carried);
      rate.carried -= rounds;
      moved += skip_rounds(agents_[i], rounds, {}, most_lines, &told);
      all += rounds;
    }
  }
  return all;
}

void Gpu::leave_out_rounds_of(std::uint32_t slot, double rounds, SubCycle time, Told told) {
  L2Cache::Touched moved;
  leave_out_shared(slot, rounds, told, moved);
  skipped_.hbm_read_bytes += moved.fetched_bytes;
  skipped_.hbm_write_bytes += moved.written_back_bytes;
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i].kernel == slot) round_rates_[i].since -= time;
  }
}

void Gpu::leave_out_blocks_of(std::uint32_t slot, std::uint64_t blocks, Told told) {
  RunningKernel& kernel = running_[slot];
  const L2Cache::Touched moved = leave_out_blocks(kernel, blocks - blocks % kernel.cluster_blocks, told);
  skipped_.hbm_read_bytes += moved.fetched_bytes;
  skipped_.hbm_write_bytes += moved.written_back_bytes;
}

}  // namespace weft
