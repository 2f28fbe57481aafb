// Thread blocks as recorded, on a GPU with smaller units than the recorded one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "sim/program.h"

namespace weft {

// A library would have chosen another kernel there; what is known is the recorded one. A block that does not fit gets
// what a whole unit has of shared memory and registers, so one stands on a unit at a time. Clusters larger than those
// of the GPU are cut: what blocks of one fetched for each other each of them fetches for itself.
class FittingBlocks {
 public:
  explicit FittingBlocks(const GpuSpec& gpu) : gpu_(&gpu) {}

  // `reads`: what the blocks read, with `shared_by` (Operand or TensorUse).
  template <class Reads>
  void cut(LaunchShape& shape, Reads& reads) {
    cut_block(shape);
    if (!cut_cluster(shape)) return;
    for (auto& use : reads) use.shared_by = 1;
  }
  // What was cut, for people.
  void note(std::vector<std::string>& notes) const;

 private:
  void cut_block(LaunchShape& shape);
  bool cut_cluster(LaunchShape& shape);

  const GpuSpec* gpu_;
  std::size_t blocks_ = 0, clusters_ = 0;
};

}  // namespace weft
