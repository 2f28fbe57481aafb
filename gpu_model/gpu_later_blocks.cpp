// Blocks that run become those of a later wave, which are where these are now: whole waves are left out in between.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "gpu_model/l2_warming.h"
#include "gpu_model/told_lines.h"

namespace weft {

namespace {
constexpr std::uint32_t kSteps = 64;  // in which all blocks come to where they are, together
// So many of all blocks, a quarter of what `sampled` may be off by, may be in another wave than they would be.
constexpr double kMostOff = 0.005;

bool same_lines(const Phase& a, const Phase& b) {
  const auto same = [](const LineStream& x, const LineStream& y) { return x.lines == y.lines; };
  return std::equal(a.loads.begin(), a.loads.begin() + a.load_count, b.loads.begin(), same) &&
         std::equal(a.stores.begin(), a.stores.begin() + a.store_count, b.stores.begin(), same);
}
// Blocks whose stores are on their way, about.
std::uint64_t blocks_storing(const RunningKernel& kernel) {
  std::uint64_t lines = 0;
  for (std::uint32_t p = 0; p < kernel.program->phases(); ++p) {
    const Phase phase = kernel.program->phase(0, p);
    for (std::size_t i = 0; i < phase.store_count; ++i) lines += phase.stores.at(i).lines;
  }
  return lines > 0 ? (kernel.stores_out + lines - 1) / lines : 0;
}
}  // namespace

// By how many blocks they are later: at most `most`, nearly whole waves, and so that they share with each other what
// they do now. 0: there are no such. The L2 is told what it holds then.
std::uint64_t Gpu::become_later_blocks(std::uint32_t slot, std::uint64_t wave, std::uint64_t most) {
  RunningKernel& kernel = running_[slot];
  const KernelProgram& program = *kernel.program;
  std::vector<std::size_t> running;
  std::uint64_t first = kernel.begun();
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i].finished || agents_[i].kernel != slot) continue;
    running.push_back(i);
    first = std::min(first, agents_[i].block_number);
  }
  // Else the last wave has more blocks, or fewer, than it would have.
  const auto most_off = static_cast<std::uint64_t>(kMostOff * static_cast<double>(kernel.blocks));
  std::uint64_t later = program.alike_after(first, kernel.begun(), most);
  while (std::min(later % wave, wave - later % wave) > most_off && later % wave != 0) {
    later = program.alike_after(first, kernel.begun(), later - 1);
  }
  if (later == 0) return 0;
  std::vector<Phase> phases;
  for (const std::size_t i : running) {
    phases.push_back(program.phase(agents_[i].block_number + later, agents_[i].phase_index));
    if (!same_lines(agents_[i].phase, phases.back())) return 0;
  }
  kernel.leave_out(later);
  const std::uint64_t behind = first + later;
  const std::uint64_t told = first_told(program, behind, running.size(), WaveSkip::kFills * spec_.l2.bytes);
  touch_blocks(program, told, behind, running.size(), l2_, blocks_storing(kernel));
  for (std::size_t n = 0; n < running.size(); ++n) {
    Agent& agent = agents_[running[n]];
    agent.block_number += later;
    agent.phase = phases[n];
    if (agent.load_stream < agent.load_count) agent.load = agent.phase.loads[agent.load_stream];
    if (agent.store_stream < agent.store_count) agent.store = agent.phase.stores[agent.store_stream];
    if (running[n] < round_rates_.size()) round_rates_[running[n]].block += later;
  }
  tell_progress(running);
  return later;
}

// The L2 is told what blocks have read and written of their phases, in the order in which they came to where they are.
void Gpu::tell_progress(const std::vector<std::size_t>& agents) {
  ToldLines told;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    for (const std::size_t i : agents) {
      const Agent& agent = agents_[i];
      const std::uint32_t partition = units_[agent.unit].partition;
      const auto touch = [&](const LineStream& stream, std::uint32_t round, bool stored) {
        const std::uint64_t lines = stream.lines_before(round, agent.rounds);
        auto from = static_cast<std::uint32_t>(lines * step / kSteps);
        auto to = static_cast<std::uint32_t>(lines * (step + 1) / kSteps);
        told.shorten(stream.first, partition, stored, from, to);
        if (from >= to) return;
        const L2Cache::Use use = stored ? L2Cache::Use::write : L2Cache::Use::read;
        l2_.touch({.first = stream.first + from,
                   .count = to - from,
                   .first_sectors = stream.sectors(from),
                   .last_sectors = stream.sectors(to - 1),
                   .partition = partition},
                  stream.atomic ? L2Cache::Use::atomic : use);
      };
      for (std::uint32_t s = 0; s < agent.load_count; ++s) touch(agent.phase.loads[s], agent.load_round, false);
      for (std::uint32_t s = 0; s < agent.store_count; ++s) touch(agent.phase.stores[s], agent.store_round, true);
    }
  }
}

}  // namespace weft
