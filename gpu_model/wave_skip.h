// A kernel of many waves, or of many rounds, settles: each turn of its work then takes as long as the one before, but
// for the bytes that come from HBM. WaveSkip watches a kernel that runs by itself, says when turns may be left out, and
// what they would have taken.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/kernel_program.h"
#include "gpu_model/l2_cache.h"

namespace weft {

// What a GPU has done, up to a moment or in a part of a run.
struct GpuProgress {
  SubCycle at = 0;
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, memory_transactions = 0;
  std::int64_t hbm_communication_bytes = 0;  // among those read and written
  double unit_seconds_compute = 0;

  GpuProgress& operator+=(const GpuProgress& more);
  [[nodiscard]] GpuProgress since(const GpuProgress& before) const;
  [[nodiscard]] GpuProgress times(double factor) const;
  [[nodiscard]] double hbm_bytes() const { return static_cast<double>(hbm_read_bytes + hbm_write_bytes); }
};

class WaveSkip {
 public:
  // Work is counted in blocks or in rounds: `work` of them, of which `done` are, `turn` in each turn. `hbm_rate`: bytes
  // in a subcycle at most. `cache_bytes`: of the L2.
  WaveSkip(std::uint64_t work, std::uint64_t done, std::uint64_t turn, double hbm_rate, std::int64_t cache_bytes);

  // So much work is done. True: the last turns agree; some may be left out now. What `progress` says includes what was
  // left out.
  template <class Progress>
  bool advanced(std::uint64_t done, Progress&& progress) {
    return done >= next_mark_ && mark(progress());
  }
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  // Turns that may be left out now, before it is looked at again: more where turns stay as they were.
  [[nodiscard]] std::uint64_t most_turns() const { return most_turns_; }
  // What such turns move does not change any more: the L2 need not be asked turn by turn.
  [[nodiscard]] bool moves_the_same() const;
  // What `turns` of them move then.
  [[nodiscard]] L2Cache::Touched usual(std::uint64_t turns) const;
  // So much work, `turns` about, is left out, which moves so many bytes. False: it is unlike the turns that were seen;
  // the next one is to be simulated.
  bool leave_out(std::uint64_t work, const L2Cache::Touched& moved, std::uint64_t turns = 1);
  // Something else was left out since the last mark.
  void forget_marks() { marks_.clear(); }

  // What the turns take that were left out since the last advanced().
  [[nodiscard]] const GpuProgress& skipped() const { return skipped_; }
  // One standard deviation of skipped().at, about.
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_; }

  // Two turns agree within this share of their time.
  static constexpr double kSettled = 0.04;
  // A turn is alike whose HBM bytes differ by less than this share of theirs, or of half of what HBM can move.
  static constexpr double kAlike = 0.25;
  // Turns that move this many lines: shorter ones scatter.
  static constexpr double kTurnLines = 8192;
  // Left out before it is looked at again, at first; twice as many each time that turns are as before.
  static constexpr std::uint64_t kMostTurns = 8;
  // The L2 holds nothing from before once so many times its size has gone through it.
  static constexpr std::int64_t kFills = 2;
  // The first turn, two that agree, one that is left out, and one in which the work ends as it would.
  static constexpr std::uint64_t kFewestTurns = 5;

 private:
  bool mark(const GpuProgress& now);
  // What a turn takes that moves so many bytes.
  [[nodiscard]] double time_of(const GpuProgress& like, double bytes) const;

  std::uint64_t turn_;
  double hbm_rate_;
  std::int64_t cache_bytes_;
  std::uint64_t next_mark_;
  std::vector<GpuProgress> marks_;
  GpuProgress mean_;  // of the two turns that agree
  GpuProgress skipped_;
  std::uint64_t most_turns_ = kMostTurns;
  std::uint64_t asked_ = 0;  // turns in a row that the L2 was asked about and that were alike
  L2Cache::Touched moved_;   // by these
  SubCycle scatter_ = 0;     // of a turn
  SubCycle uncertainty_ = 0;
};

// Rounds of a turn, of a kernel of which so many blocks run at once.
[[nodiscard]] std::uint64_t rounds_of_turn(const KernelProgram& program, std::uint64_t resident);

}  // namespace weft
