// Long kernels that ask for the same as one before, at other addresses: if the L2 that they meet lets through as much,
// they take as long, and are not simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/sampled/regime.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/l2_cache.h"

namespace weft {

class LikeKernels {
 public:
  LikeKernels(const GpuSpec& gpu, const Program& program);

  // Whether it is long, and the program has others that ask for the same.
  [[nodiscard]] bool worth_asking(OpId kernel) const { return kind_of_[kernel.value] != kNone; }
  // It moves `told` to and from HBM, as the L2 says that is told of all its blocks: from one that was simulated and
  // moved about as much. None: there is no such one.
  [[nodiscard]] std::optional<Regime> find(OpId kernel, const L2Cache::Touched& told) const;
  // It was simulated.
  void add(OpId kernel, const L2Cache::Touched& told, const Regime& regime);

  // What the L2 is asked for, at least: less is simulated as fast as it is told.
  static constexpr std::uint64_t kLongBytes = 16 << 20;
  // HBM bytes differ by this share of theirs, or of what the kernel touches, at most.
  static constexpr double kAlike = 0.05;
  // By how much such kernels differ, one standard deviation (docs/validation.md, Kernels in samples).
  static constexpr double kScatter = 0.03;

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  struct Sample {
    L2Cache::Touched told;
    Regime regime;
  };
  std::vector<std::uint32_t> kind_of_;        // by operation
  std::vector<std::vector<Sample>> samples_;  // by kind
  std::vector<double> bytes_of_kind_;         // that one touches
  double hbm_rate_;                           // bytes in a subcycle
};

}  // namespace weft
