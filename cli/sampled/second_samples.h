// Which kernels are looked at twice, to know how far what was seen once may be off: those in which the time goes.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "sim/program.h"

namespace weft {

class SecondSamples {
 public:
  SecondSamples(const GpuSpec& gpu, const Program& program);

  // The kernel is simulated for the first time: whether a second sample of it is worth while. Of launches that ask for
  // the same at other addresses, one is taken at most; and about kAsked in all, the longer together the likelier.
  [[nodiscard]] bool wanted(OpId kernel);
  // A kernel by itself took so long; in a second sample, if there is one, `second`, else 0.
  void count(OpId kernel, double duration, double second);

  // What all that was counted may be off by together, as second samples differ, and by how much that scatters: as
  // shares of `time`, of which it is a part. Kernels that are too long for a second sample are not among them: WaveSkip
  // knows how much what it left out scatters.
  struct Off {
    double bias = 0, scatter = 0;
  };
  [[nodiscard]] Off off(double time) const;

  static constexpr double kAsked = 16;
  // What a kernel streams at most that is simulated whole: more would take seconds.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;

 private:
  struct Demand {
    double expected = 0;  // time of all its launches, in any unit
    bool too_long = false, decided = false;
    double first = 0, difference = 0;  // of launches that have a second sample
    double chance = 0;                 // a number from 0 to 1, the same in each run
  };
  std::vector<std::uint32_t> demand_of_;  // by operation; of kernels
  std::vector<Demand> demands_;
  double expected_ = 0;  // of all
  double counted_ = 0;   // time of those that are not too long
};

}  // namespace weft
