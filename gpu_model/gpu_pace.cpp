// Rounds of collectives that are left out: see collective_pace.h.
#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "gpu_model/gpu.h"

namespace weft {

namespace {

void hash_stream(std::size_t& seed, const LineStream& stream, std::uint32_t rounds) {
  boost::hash_combine(seed, (stream.lines + rounds - 1) / rounds);
  boost::hash_combine(seed, static_cast<std::uint32_t>(stream.target));
  boost::hash_combine(seed, stream.adds);
}

std::uint64_t kind_of(const Phase& phase) {
  std::size_t seed = phase.stages;
  boost::hash_combine(seed, phase.compute);
  for (std::size_t i = 0; i < phase.load_count; ++i) hash_stream(seed, phase.loads.at(i), phase.rounds);
  boost::hash_combine(seed, phase.load_count);
  for (std::size_t i = 0; i < phase.store_count; ++i) hash_stream(seed, phase.stores.at(i), phase.rounds);
  return seed;
}

// Flags inside the data count lines, and routers number what they sum: neither can be left out.
bool counts_lines(const Phase& phase) {
  for (std::size_t i = 0; i < phase.load_count; ++i) {
    if (phase.loads.at(i).arrival_flag != kNoFlag) return true;
  }
  for (std::size_t i = 0; i < phase.store_count; ++i) {
    const LineStream& store = phase.stores.at(i);
    if (store.arrival_flag != kNoFlag || store.target == Target::tree || (store.adds && store.target != Target::local))
      return true;
  }
  return false;
}

}  // namespace

// And nothing of the host is due.
bool Gpu::only_collectives() const {
  if (control_due_ > 0 || active_.empty() || !flushing_.empty() || work_.values != nullptr) return false;
  return std::all_of(active_.begin(), active_.end(), [this](std::uint32_t slot) {
    return running_[slot].timed || (running_[slot].communication && !running_[slot].has_to_place());
  });
}

bool Gpu::paced(std::vector<PacedWarps>& found) const {
  if (!only_collectives()) return false;
  for (std::uint32_t i = 0; i < agents_.size(); ++i) {
    const Agent& agent = agents_[i];
    if (agent.finished) continue;
    if (agent.waits || agent.at_fence || counts_lines(agent.phase)) return false;
    found.push_back({.kind = kind_of(agent.phase),
                     .agent = i,
                     .phase = agent.phase_index,
                     .done = agent.store_count > 0 ? agent.store_round : agent.computed,
                     .ahead = agent.load_round,
                     .rounds = agent.rounds,
                     .stages = agent.stages});
  }
  return true;
}

void Gpu::leave_out(std::uint32_t index, std::uint32_t rounds, const TouchElsewhere& elsewhere) {
  const L2Cache::Touched moved = skip_rounds(agents_[index], rounds, elsewhere);
  count_left_out(moved);
}

void Gpu::count_left_out(const L2Cache::Touched& moved) {
  skipped_.hbm_read_bytes += moved.fetched_bytes;
  skipped_.hbm_write_bytes += moved.written_back_bytes;
  skipped_.hbm_communication_bytes += moved.fetched_bytes + moved.written_back_bytes;
}

void Gpu::add_left_out(const GpuProgress& moved, std::uint64_t remote_lines) {
  skipped_ += moved;
  remote_left_out_ += remote_lines;
}

void Gpu::leave_out(SubCycle time) {
  skipped_.at += time;
  for (const TimedKernel& kernel : timed_) expect_timed(kernel);
  const double seconds = to_seconds(clock_.to_time(time));
  for (const Unit& unit : units_) {
    if (unit.communication_blocks > 0) {
      statistics_.unit_seconds_communication += seconds;
    } else if (unit.compute_blocks > 0) {
      statistics_.unit_seconds_compute += seconds;
    }
  }
}

void Gpu::leave_out(const RepeatedOps& ops, const GpuProgress& moved, double communicating) {
  skipped_ += moved;
  statistics_.unit_seconds_communication += communicating;
  ready_.clear();
  go_on(frontend_.leave_out(ops, ready_));
}

void Gpu::touch(const L2Cache::Lines& lines, bool stored) {
  if (in_sram(lines.first)) return;
  count_left_out(l2_.touch(lines, stored ? L2Cache::Use::write : L2Cache::Use::read));
}

}  // namespace weft
