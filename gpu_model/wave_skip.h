// A kernel of many waves settles: each turn of blocks then takes as long as the one before. WaveSkip watches a kernel
// that runs by itself and says how many blocks may be left out once that is so, and what they would have taken.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"

namespace weft {

// What a GPU has done, up to a moment or in a part of a run.
struct GpuProgress {
  SubCycle at = 0;
  std::int64_t hbm_read_bytes = 0, hbm_write_bytes = 0, memory_transactions = 0;
  double unit_seconds_compute = 0;

  GpuProgress& operator+=(const GpuProgress& more);
  [[nodiscard]] GpuProgress since(const GpuProgress& before) const;
  [[nodiscard]] GpuProgress times(double factor) const;
};

class WaveSkip {
 public:
  // `resident` blocks of `blocks` run at once; a block touches `block_lines` lines, `own_lines` of them nobody else.
  // Until as many of these have passed as the cache holds, what it held before still matters: parts that are left out
  // are short until then.
  WaveSkip(std::uint64_t blocks, std::uint64_t resident, double block_lines, double own_lines, double cache_lines);

  // So many blocks are done and as many have been started. Returns blocks to leave out now; 0: go on.
  template <class Progress>
  std::uint64_t block_ended(std::uint64_t done, std::uint64_t started, Progress&& progress) {
    return done == next_mark_ ? mark(started, progress()) : 0;
  }

  // What the blocks take that were just left out.
  [[nodiscard]] const GpuProgress& skipped() const { return skipped_; }
  // One standard deviation of skipped().at.
  [[nodiscard]] SubCycle uncertainty() const { return uncertainty_; }

  // Turns agree within this share when a kernel counts as settled, in time and in HBM traffic.
  static constexpr double kSettled = 0.02;
  static constexpr double kSettledTraffic = 0.03;
  // A turn is as many waves as touch this many lines: shorter ones scatter.
  static constexpr double kTurnLines = 8192;
  // Of the cache, what may be left out at once before all it held has been replaced.
  static constexpr double kShortPart = 0.25;

 private:
  std::uint64_t mark(std::uint64_t started, const GpuProgress& now);

  std::uint64_t blocks_;
  std::uint64_t turn_;
  double own_lines_;
  double cache_lines_;
  std::uint64_t next_mark_ = 0;  // 0: no further one
  std::vector<GpuProgress> marks_;
  GpuProgress skipped_;
  SubCycle uncertainty_ = 0;
};

}  // namespace weft
