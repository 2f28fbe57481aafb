// Waves and rounds of a kernel that are left out, and moments at which a run may be cut.
#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu_model/gpu.h"
#include "gpu_model/l2_warming.h"

namespace weft {

namespace {
// Waves of so many turns of rounds: what is left out of one is more than what is looked at.
constexpr std::uint64_t kLongWave = 32;
double lines_of_block(const KernelProgram& program) {
  double lines = 0;
  for (std::uint32_t p = 0; p < program.phases(); ++p) {
    const Phase phase = program.phase(0, p);
    for (std::size_t i = 0; i < phase.load_count; ++i) lines += phase.loads.at(i).lines;
    for (std::size_t i = 0; i < phase.store_count; ++i) lines += phase.stores.at(i).lines;
  }
  return lines;
}

std::uint64_t turn_of(double lines_of_each, std::uint64_t resident) {
  const double lines = std::max(1.0, lines_of_each * static_cast<double>(resident));
  return resident * static_cast<std::uint64_t>(std::max(1.0, std::ceil(WaveSkip::kTurnLines / lines)));
}

}  // namespace

std::uint64_t rounds_of_turn(const KernelProgram& program, std::uint64_t resident) {
  return turn_of(lines_of_block(program) / program.phase(0, 0).rounds, resident);
}

void Gpu::watch_waves(const RunningKernel& kernel) {
  waves_.reset();
  rounds_.reset();
  const std::uint64_t resident = kernel.begun() - kernel.blocks_done;
  if (!kernel.program || kernel.pushed != nullptr || active_.size() != 1 || resident == 0) return;
  const double lines = lines_of_block(*kernel.program);
  const Phase phase = kernel.program->phase(0, 0);
  const std::uint32_t rounds = phase.rounds;
  const double hbm_rate = hbm_rate_of(spec_);
  // Whole waves where there are many: with how they begin and end. Else rounds of the blocks that run, and of long
  // waves these, too.
  const std::uint64_t work = (kernel.blocks - kernel.blocks_done) * rounds;
  const std::uint64_t turn = turn_of(lines, resident) * rounds;
  const std::uint64_t turn_of_rounds = turn_of(lines / rounds, resident);
  const bool many = work >= WaveSkip::kFewestTurns * turn && !kernel.program->persistent();
  if (many) waves_.emplace(work, turn, WaveSkip::kWaves, hbm_rate, spec_.l2.bytes);
  const std::uint64_t turns_of_wave = resident * rounds / turn_of_rounds;
  if (phase.compute > 0 && (!many || turns_of_wave >= kLongWave)) {
    const TurnSampling sampling = WaveSkip::of_rounds(turns_of_wave);
    rounds_.emplace(work, turn_of_rounds, sampling, hbm_rate, spec_.l2.bytes);
  }
  rounds_done_ = 0;
  rounds_of_block_ = phase.compute > 0 ? 0 : rounds;
  block_changes_ = kernel.begun() + kernel.blocks_done;
}

GpuProgress Gpu::progress() const {
  const HbmStatistics hbm = l2_.hbm_statistics();
  SubCycle not_counted = 0;  // of units whose blocks have not changed since
  for (const Unit& unit : units_) {
    if (unit.compute_blocks > 0 && unit.communication_blocks == 0) not_counted += now() - unit.accounted;
  }
  GpuProgress done{.at = now(),
                   .hbm_read_bytes = hbm.read_bytes,
                   .hbm_write_bytes = hbm.write_bytes,
                   .memory_transactions = statistics_.memory_transactions,
                   .unit_seconds_compute = statistics_.unit_seconds_compute + to_seconds(clock_.to_time(not_counted))};
  return done += skipped_;
}

// Leaves out turns as long as they are alike, `most` of them; `turns` does so with some and says whether others may
// follow.
template <class Turns>
void Gpu::leave_out(WaveSkip& skip, std::uint64_t most, Turns&& turns) {
  if (control_due_ > 0 || collectives_ > 0 || !flushing_.empty()) return;
  const double variance = skip.variance();
  for (most = std::min(most, skip.most_turns()); most > 0;) {
    const std::uint64_t together = skip.moves_the_same() ? most : 1;
    if (!turns(together)) break;
    most -= together;
  }
  skipped_ += skip.skipped();
  skip_variance_ += skip.variance() - variance;
}

// The next blocks are through.
L2Cache::Touched Gpu::leave_out_blocks(RunningKernel& kernel, std::uint64_t blocks, Told told) {
  const std::uint64_t resident = resident_blocks(spec_, *kernel.program);
  std::uint64_t first = kernel.begun();
  kernel.leave_out(blocks);
  if (told == Told::nothing) return {};
  if (told == Told::last) {
    first = std::max(first, first_told(*kernel.program, kernel.begun(), resident, WaveSkip::kFills * spec_.l2.bytes));
  }
  return touch_blocks(*kernel.program, first, kernel.begun(), resident, l2_);
}

void Gpu::leave_out_waves() {
  if (!waves_->advanced(rounds_done_, [this] { return progress(); })) return;
  RunningKernel& kernel = running_[active_.front()];
  const std::uint32_t rounds = kernel.program->phase(0, 0).rounds;
  const std::uint64_t blocks = waves_->turn() / rounds;
  const std::uint64_t turns = (kernel.blocks - kernel.begun()) / blocks;
  leave_out(*waves_, turns > 0 ? turns - 1 : 0, [&](std::uint64_t together) {
    if (rounds_ && waves_->moves_the_same()) {
      const std::uint64_t later = become_later_blocks(active_.front(), blocks, together * blocks);
      if (later == 0) return false;
      rounds_done_ += later * rounds;
      const double turns_left_out = static_cast<double>(later) / static_cast<double>(blocks);
      return waves_->leave_out(later * rounds, waves_->usual(turns_left_out),
                               std::max<std::uint64_t>(1, later / blocks));
    }
    const L2Cache::Touched moved = leave_out_blocks(kernel, together * blocks, together == 1 ? Told::all : Told::last);
    rounds_done_ += together * waves_->turn();
    return waves_->leave_out(together * waves_->turn(),
                             together == 1 ? moved : waves_->usual(static_cast<double>(together)), together);
  });
  if (rounds_) rounds_->begin_at(rounds_done_);
}

// All blocks that run go on, each by as many rounds as its rate says; what they wait for stays as it is.
void Gpu::leave_out_rounds() {
  const std::uint32_t slot = active_.front();
  const RunningKernel& kernel = running_[slot];
  const bool agree = rounds_->advanced(rounds_done_, [&] {
    note_rounds();
    const std::uint64_t changes = kernel.begun() + kernel.blocks_done;
    if (std::exchange(block_changes_, changes) != changes) rounds_->begin_at(rounds_done_);
    return progress();
  });
  if (!agree) return;
  double turns = share_rounds(slot, static_cast<double>(rounds_->turn()));
  // Up to where the time of a wave is taken.
  if (waves_) {
    const auto whole = (waves_->next_mark() - rounds_done_) / rounds_->turn();
    turns = std::min(turns, static_cast<double>(whole) + 1);
  }
  leave_out(*rounds_, turns > 2 ? static_cast<std::uint64_t>(turns) - 1 : 0, [&](std::uint64_t together) {
    L2Cache::Touched moved;
    const std::uint64_t rounds =
        leave_out_shared(slot, static_cast<double>(together), together == 1 ? Told::all : Told::last, moved);
    rounds_done_ += rounds;
    return rounds_->leave_out(rounds, together == 1 ? moved : rounds_->usual(static_cast<double>(together)), together);
  });
  for (RoundRate& rate : round_rates_) rate.since -= rounds_->skipped().at;
}

// Rounds of the kernel that runs by itself are through.
void Gpu::leave_out_work(std::uint64_t rounds) {
  rounds_done_ += rounds;
  if (waves_) leave_out_waves();
  if (rounds_) leave_out_rounds();
}

// The L2 is told the last `most_lines` of each stream.
L2Cache::Touched Gpu::skip_rounds(Agent& agent, std::uint32_t rounds, const TouchElsewhere& elsewhere,
                                  std::uint32_t most_lines, ToldLines* told) {
  L2Cache::Touched moved;
  const bool communication = running_[agent.kernel].communication;
  const auto touch = [&](const LineStream& stream, std::uint32_t from, std::uint32_t to, bool stored) {
    if (from >= to || most_lines == 0) return;
    if (to - from > most_lines) from = to - most_lines;
    if (told != nullptr && stream.target == Target::local) {
      told->shorten(stream.first, units_[agent.unit].partition, stored, from, to);
      if (from >= to) return;
    }
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
    const L2Cache::Use use = stored ? L2Cache::Use::write : L2Cache::Use::read;
    if (!in_sram(lines.first)) moved += l2_.touch(lines, stream.atomic ? L2Cache::Use::atomic : use);
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
  // Rounds that load nothing may all be complete already.
  const std::uint32_t complete = std::min(agent.complete + rounds, agent.phase.rounds);
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
    agent.needed += before(stream, complete + 1);
  }
  for (std::uint32_t s = 0; s < agent.store_count; ++s) {
    const LineStream& stream = agent.phase.stores[s];
    const std::uint32_t round = agent.store_round + (s < agent.store_stream ? 1 : 0);
    if (s == agent.store_stream) move(stream, round, agent.store_line, agent.store_end);
    touch(stream, before(stream, round), before(stream, round + rounds), true);
  }
  agent.complete = complete;
  for (std::uint32_t* at : {&agent.started, &agent.computed, &agent.load_round, &agent.store_round}) *at += rounds;
  // All that was issued is back but for what is out.
  agent.returned = issued - agent.loads_out;
  return moved;
}

std::optional<ProgramPlace> Gpu::quiet() const {
  if (!active_.empty() || !flushing_.empty()) return std::nullopt;
  const auto place = frontend_.place();
  // Where others have overtaken a stream, only it may go on: else this is the gap between two kernels beside it.
  if (place && place->first < place->end && starting_ > 1) return std::nullopt;
  return place;
}

}  // namespace weft
