// Waves and rounds of a kernel that are left out, and moments at which a run may be cut.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gpu_model/gpu.h"
#include "gpu_model/l2_warming.h"

namespace weft {

namespace {
constexpr std::uint32_t kMostBlocksOfUnit = 32;  // CUDA programming guide, table of technical specifications
}

void Gpu::watch_waves(const RunningKernel& kernel) {
  waves_.reset();
  if (!kernel.program || active_.size() != 1) return;
  double lines = 0;
  for (std::uint32_t p = 0; p < kernel.program->phases(); ++p) {
    const Phase phase = kernel.program->phase(0, p);
    for (std::size_t i = 0; i < phase.load_count; ++i) lines += phase.loads.at(i).lines;
    for (std::size_t i = 0; i < phase.store_count; ++i) lines += phase.stores.at(i).lines;
  }
  const std::uint64_t resident = kernel.next_block;
  const auto turn_of = [&](double lines_of_each) {
    return resident *
           static_cast<std::uint64_t>(std::max(
               1.0, std::ceil(WaveSkip::kTurnLines / std::max(1.0, lines_of_each * static_cast<double>(resident)))));
  };
  const std::uint32_t rounds = kernel.program->phase(0, 0).rounds;
  const double hbm_rate = static_cast<double>(spec_.hbm.bandwidth.count()) /
                          (static_cast<double>(spec_.clock.count()) * static_cast<double>(kCycle));
  // Whole waves where there are many: with how they begin and end. Else rounds of the blocks that run.
  std::uint64_t turn = turn_of(lines);
  leaves_out_rounds_ = kernel.blocks < WaveSkip::kFewestTurns * turn;
  if (leaves_out_rounds_) turn = turn_of(lines / rounds);
  waves_.emplace(leaves_out_rounds_ ? kernel.blocks * rounds : kernel.blocks, turn, hbm_rate);
  rounds_done_ = 0;
}

GpuProgress Gpu::progress() const {
  const HbmStatistics hbm = l2_.hbm_statistics();
  return {now(), hbm.read_bytes, hbm.write_bytes, statistics_.memory_transactions, statistics_.unit_seconds_compute};
}

// Leaves out turns as long as they are alike, `most` of them; `turn` does so with one and says whether another may
// follow.
template <class Turn>
void Gpu::leave_out(std::uint64_t most, Turn&& turn) {
  if (active_.size() != 1) {  // not by itself any more
    waves_.reset();
    return;
  }
  for (most = std::min(most, WaveSkip::kMostTurns); most > 0 && turn(); --most) {
  }
  skipped_ += waves_->skipped();
  skip_uncertainty_ += waves_->uncertainty();
}

void Gpu::leave_out_waves(RunningKernel& kernel) {
  if (!waves_->advanced(kernel.blocks_done, [this] { return progress(); })) return;
  const std::uint64_t blocks = waves_->turn();
  const std::uint64_t turns = (kernel.blocks - kernel.next_block) / blocks;
  leave_out(turns > 0 ? turns - 1 : 0, [&] {
    const std::uint64_t first = kernel.next_block;
    kernel.next_block += blocks;
    kernel.blocks_done += blocks;
    return waves_->leave_out(
        blocks, touch_blocks(*kernel.program, first, kernel.next_block, resident_blocks(spec_, *kernel.program), l2_));
  });
}

// How fast each block goes: those that share a unit with fewer others are faster.
void Gpu::note_rounds() {
  round_rates_.resize(agents_.size());
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    const Agent& agent = agents_[i];
    RoundRate& rate = round_rates_[i];
    if (!agent.finished && (rate.kernel != launches_ || rate.block != agent.block_number)) {
      rate = {.kernel = launches_, .block = agent.block_number, .since = now(), .returned = agent.returned};
    }
  }
}

// All blocks that run go on, each by as many rounds as its rate says; what they wait for stays as it is.
void Gpu::leave_out_rounds() {
  const bool agree = waves_->advanced(++rounds_done_, [this] {
    note_rounds();
    return progress();
  });
  if (!agree) return;
  // Those that share a unit with as many others go equally fast but for chance.
  struct Crowd {
    double rate = 0, blocks = 0;
  };
  std::array<Crowd, kMostBlocksOfUnit + 1> crowds{};
  const auto crowd_of = [&](const Agent& agent) -> Crowd& {
    return crowds.at(std::min(units_[agent.unit].compute_blocks, kMostBlocksOfUnit));
  };
  double all = 0;
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    const Agent& agent = agents_[i];
    if (agent.finished) continue;
    const RoundRate& rate = round_rates_[i];
    if (agent.phase_index != 0 || rate.since == now()) return;
    const double lines = static_cast<double>(agent.returned - rate.returned) / static_cast<double>(now() - rate.since);
    crowd_of(agent).rate += lines;
    ++crowd_of(agent).blocks;
    all += lines;
  }
  if (all <= 0) return;
  auto turns = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i].finished) continue;
    RoundRate& rate = round_rates_[i];
    const Crowd& crowd = crowd_of(agents_[i]);
    rate.rounds = crowd.rate / crowd.blocks * static_cast<double>(waves_->turn()) / all;
    rate.carried = 0.5;
    const double left = agents_[i].rounds - agents_[i].load_round;
    if (rate.rounds > 0) turns = std::min(turns, left / rate.rounds);
  }
  leave_out(turns > 2 ? static_cast<std::uint64_t>(turns) - 1 : 0, [this] {
    L2Cache::Touched moved;
    const std::uint64_t before = rounds_done_;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (agents_[i].finished) continue;
      RoundRate& rate = round_rates_[i];
      rate.carried += rate.rounds;
      const auto rounds = static_cast<std::uint32_t>(rate.carried);
      rate.carried -= rounds;
      moved += skip_rounds(agents_[i], rounds);
      rounds_done_ += rounds;
    }
    return waves_->leave_out(rounds_done_ - before, moved);
  });
  if (!waves_) return;
  for (RoundRate& rate : round_rates_) rate.since -= waves_->skipped().at;
}

L2Cache::Touched Gpu::skip_rounds(Agent& agent, std::uint32_t rounds, const TouchElsewhere& elsewhere) {
  L2Cache::Touched moved;
  const bool communication = running_[agent.kernel].communication;
  const auto touch = [&](const LineStream& stream, std::uint32_t from, std::uint32_t to, bool stored) {
    if (from >= to) return;
    const L2Cache::Lines lines{.first = stream.first + from,
                               .count = to - from,
                               .first_sectors = stream.sectors(from),
                               .last_sectors = stream.sectors(to - 1),
                               .partition = units_[agent.unit].partition,
                               .communication = communication};
    if (stream.target != Target::local) {
      remote_left_out_ += lines.count;
      elsewhere(stream, lines, stored);
      return;
    }
    if (!in_sram(lines.first)) moved += l2_.touch(lines, stored || stream.atomic);
  };
  // The cursors then stand as many lines behind the beginning of their rounds as they do now. Streams before the one at
  // the cursor are a round ahead.
  const auto before = [&](const LineStream& stream, std::uint32_t round) {
    return stream.lines_before(std::min(round, agent.rounds), agent.rounds);
  };
  const auto move = [&](const LineStream& stream, std::uint32_t round, std::uint32_t& line, std::uint32_t& end) {
    const std::uint32_t passed = line - before(stream, round);
    end = before(stream, round + rounds + 1);
    line = std::min(end, before(stream, round + rounds) + passed);
  };
  std::uint32_t issued = 0;
  agent.needed = 0;
  for (std::uint32_t s = 0; s < agent.load_count; ++s) {
    const LineStream& stream = agent.phase.loads[s];
    std::uint32_t from = agent.load_line;
    if (s == agent.load_stream) {
      move(stream, agent.load_round, agent.load_line, agent.load_end);
      issued += agent.load_line;
      touch(stream, from, agent.load_line, false);
    } else {
      const std::uint32_t round = agent.load_round + (s < agent.load_stream ? 1 : 0);
      issued += before(stream, round + rounds);
      touch(stream, before(stream, round), before(stream, round + rounds), false);
    }
    agent.needed += before(stream, agent.complete + rounds + 1);
  }
  for (std::uint32_t s = 0; s < agent.store_count; ++s) {
    const LineStream& stream = agent.phase.stores[s];
    const std::uint32_t round = agent.store_round + (s < agent.store_stream ? 1 : 0);
    if (s == agent.store_stream) move(stream, round, agent.store_line, agent.store_end);
    touch(stream, before(stream, round), before(stream, round + rounds), true);
  }
  for (std::uint32_t* at : {&agent.complete, &agent.started, &agent.computed, &agent.load_round, &agent.store_round}) {
    *at += rounds;
  }
  // All that was issued is back but for what is out.
  agent.returned = issued - agent.loads_out;
  return moved;
}

std::optional<std::uint32_t> Gpu::quiet() const {
  if (active_.empty() && flushing_.empty()) return frontend_.ended_prefix();
  return std::nullopt;
}

}  // namespace weft
