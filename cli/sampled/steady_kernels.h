// Kernels that run beside collectives, or several on a GPU: how fast they go between marks, and how they go on when all
// that runs is left out for a while. In whole waves of blocks, where windows had whole waves; else in rounds of the
// blocks that run.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/run/machine.h"

namespace weft {

class SteadyKernels {
 public:
  struct Kernel {
    std::uint32_t gpu = 0;
    KernelWork at;
  };
  using Mark = std::vector<Kernel>;

  explicit SteadyKernels(Machine& machine) : machine_(&machine) {}

  // False: something is about to begin or to end on some GPU.
  [[nodiscard]] bool mark(Mark& found) const;
  [[nodiscard]] static bool same(const Mark& a, const Mark& b);
  // Each that goes on at all has been through a turn, or a whole wave.
  [[nodiscard]] static bool turned(const Mark& from, const Mark& to, bool waves);
  // What the rates of two windows differ by at most, as a share of their sum.
  struct Window {
    const Mark* from;
    const Mark* to;
    double seconds;
  };
  [[nodiscard]] static double scatter(const Window& before, const Window& last);

  // All go on as in this window: for how long before one of them ends something, in seconds.
  [[nodiscard]] double limit(const Window& window, bool waves);
  // Of these, the longest wave of the first GPU, in seconds; 0: none goes on in waves.
  [[nodiscard]] double longest_wave() const;
  // They go on for so long, of which the part [from, to) is left out now, as shares.
  void leave_out(double seconds, double from, double to, Told told);

 private:
  struct Going {
    std::uint32_t gpu = 0;
    KernelWork at;
    double rate = 0;  // rounds in a second
    bool in_waves = false;
  };
  // Of the same kernel on several GPUs.
  void level_waves();
  [[nodiscard]] static double blocks_of(const Going& kernel, double seconds);

  Machine* machine_;
  std::vector<Going> going_;
};

}  // namespace weft
