// A kernel of many waves, or of many rounds, settles: turns of its work then take as long as those before, but for the
// bytes that come from HBM. WaveSkip watches a kernel that runs by itself, says when turns may be left out, and what
// they would have taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
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

// What HBM moves at most, bytes in a subcycle of the units' clock.
[[nodiscard]] double hbm_rate_of(const GpuSpec& gpu);

// What took `time` and moved so many bytes to and from HBM takes so long if it moves `now`. Below half of its rate,
// bytes in the unit of `time`, HBM decides nothing, from three quarters on everything.
[[nodiscard]] double time_of_bytes(double time, double bytes, double now, double hbm_rate);

// How one looks at turns.
struct TurnSampling {
  std::uint64_t settling = 8;  // turns before those that are looked at, where there are enough of them
  std::uint64_t most = 8;      // turns that may be left out together
  // So many turns are looked at, and what they took counts whether they agree or not: where short turns and long ones
  // alternate, those that agree are the short ones. 0: until two agree; what turns took before then counts, too, and
  // more are left out each time that they are like it.
  std::uint64_t looks = 0;
};

class WaveSkip {
 public:
  // Whole waves: from one to the next little changes.
  static constexpr TurnSampling kWaves{};
  // Rounds of all blocks that run scatter, and go faster or slower in the course of a wave. So they are sampled all
  // along, and what is left out goes as those before it did.
  [[nodiscard]] static TurnSampling of_rounds(std::uint64_t turns_of_wave);

  // Work is counted in rounds: `work` of them are ahead, `turn` in each turn. `hbm_rate`: bytes in a subcycle at most.
  // `cache_bytes`: of the L2.
  WaveSkip(std::uint64_t work, std::uint64_t turn, const TurnSampling& sampling, double hbm_rate,
           std::int64_t cache_bytes);

  // So much work is done. True: the last turns agree; some may be left out now. What `progress` says includes what was
  // left out.
  template <class Progress>
  bool advanced(std::uint64_t done, Progress&& progress) {
    return done >= next_mark_ && mark(progress());
  }
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  [[nodiscard]] std::uint64_t next_mark() const { return next_mark_; }
  // Turns that may be left out now, before it is looked at again: more where turns stay as they were.
  [[nodiscard]] std::uint64_t most_turns() const { return most_turns_; }
  // What such turns move does not change any more: the L2 need not be asked turn by turn.
  [[nodiscard]] bool moves_the_same() const;
  // What `turns` of them move then.
  [[nodiscard]] L2Cache::Touched usual(double turns) const;
  // So much work, `turns` about, is left out, which moves so many bytes. False: it is unlike the turns that were seen;
  // the next one is to be simulated.
  bool leave_out(std::uint64_t work, const L2Cache::Touched& moved, std::uint64_t turns = 1);
  // What was seen since the last mark is not a turn as others are. At so much work a turn begins.
  void begin_at(std::uint64_t done) {
    marks_.clear();
    left_out_before_ = false;
    if (next_mark_ != kNever) next_mark_ = done;
  }

  // What the turns take that were left out since the last advanced().
  [[nodiscard]] const GpuProgress& skipped() const { return skipped_; }
  // Of all that was left out so far, subcycles squared, about. What goes as the same turns did is off by the same.
  [[nodiscard]] double variance() const {
    return sampling_.looks > 0 ? std::max(squares_, slowly()) : together_ * together_;
  }

  // Two turns agree within this share of their time.
  static constexpr double kSettled = 0.04;
  // A turn is alike whose HBM bytes differ by less than this share of theirs, or of half of what HBM can move.
  static constexpr double kAlike = 0.25;
  // Turns that move this many lines: shorter ones scatter.
  static constexpr double kTurnLines = 8192;
  // The L2 is asked turn by turn for so many.
  static constexpr std::uint64_t kAskedTurns = 8;
  // The L2 holds nothing from before once so many times its size has gone through it.
  static constexpr std::int64_t kFills = 2;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  // The first turn, two that agree, one that is left out, and one in which the work ends as it would.
  static constexpr std::uint64_t kFewestTurns = 5;

 private:
  bool mark(const GpuProgress& now);
  // What one of the `turns` before the last `back` marks took, on average.
  [[nodiscard]] GpuProgress turn_of(std::uint64_t turns, std::uint64_t back = 0) const;
  [[nodiscard]] bool looked_at();
  [[nodiscard]] bool settled_again() const;
  [[nodiscard]] bool as_known();
  [[nodiscard]] bool windows_agree();
  // The part of the variance that looks which follow each other do not show: what differs from batch to batch of them.
  [[nodiscard]] double slowly() const;
  // What a turn takes that moves so many bytes.
  [[nodiscard]] double time_of(const GpuProgress& like, double bytes) const {
    return time_of_bytes(static_cast<double>(like.at), like.hbm_bytes(), bytes, hbm_rate_);
  }

  std::uint64_t turn_;
  TurnSampling sampling_;
  std::uint64_t window_ = 1;  // turns that are compared with as many
  double hbm_rate_;
  std::int64_t cache_bytes_;
  std::uint64_t next_mark_;
  std::vector<GpuProgress> marks_;
  GpuProgress mean_;         // of the turns that are known
  std::uint64_t known_ = 0;  // how many these are
  GpuProgress skipped_;
  std::uint64_t most_turns_;
  std::uint64_t asked_ = 0;            // turns in a row that the L2 was asked about and that were alike
  L2Cache::Touched moved_;             // by these
  bool left_out_before_ = false;       // the marks
  SubCycle warming_ = 0;               // by which turns behind what was left out were too fast, in all
  double scatter_ = 0;                 // of the mean of a turn
  double squares_ = 0, together_ = 0;  // of what was left out
  struct Batch {
    double turns = 0, time = 0;  // left out after some looks
  };
  std::vector<Batch> batches_;
  std::uint64_t looks_ = 0;
};

// Rounds of a turn, of a kernel of which so many blocks run at once.
[[nodiscard]] std::uint64_t rounds_of_turn(const KernelProgram& program, std::uint64_t resident);

}  // namespace weft
