// Where some GPUs stand for all, and they go round rings: what counts is what the first GPU does, and when the others
// come to their collectives. So kernels of the others take a time that is known, and nothing of their GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/machine.h"

namespace weft {

// By operation: kernels that ask for the same are of one kind, from 1 on; 0: no kernel, or one that pushes sums.
[[nodiscard]] std::vector<std::uint32_t> kinds_of_kernels(const Program& program);

class OtherGpus {
 public:
  // All outlive it. `kinds`: those that all works but the first one's have; null: kernels run on all GPUs.
  // `alone`: how long a kernel takes by itself.
  OtherGpus(Machine& machine, const Program& program, const std::vector<std::uint32_t>* kinds, std::uint32_t from,
            std::function<SubCycle(OpId)> alone);

  // Between two windows: a kernel takes as long as the last one of its kind on the first GPU. If that has ended none
  // and not begun this one, since it is behind: as long as by itself.
  void look(Time now);

 private:
  void set(OpId kernel, SubCycle lasts);

  Machine* machine_;
  const Program* program_;
  const std::vector<std::uint32_t>* kinds_;
  std::function<SubCycle(OpId)> alone_;
  std::uint32_t first_open_;  // on the first GPU
  std::vector<bool> seen_;    // by operation: it has ended there
};

}  // namespace weft
