// Tensors for kernels of a trace, which does not record which memory they touch.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "workloads/graph.h"

namespace weft {

// Hands out tensors by size class (eight to an octave), in rotation: a class grows up to `class_bytes`, all together up
// to `total_bytes` (but each class has what one kernel asks for), then the oldest of the class comes again, as a
// caching allocator returns freed blocks. So footprints stay bounded and do not all fit in a cache.
class ReplayTensors {
 public:
  explicit ReplayTensors(std::vector<Tensor>& tensors, std::int64_t class_bytes = std::int64_t{256} << 20,
                         std::int64_t total_bytes = std::int64_t{8} << 30)
      : tensors_(tensors), class_bytes_(class_bytes), total_bytes_(total_bytes) {}

  // A tensor of at least `bytes`, none of `in_use`.
  [[nodiscard]] TensorId take(Bytes bytes, std::span<const TensorId> in_use = {});

 private:
  struct Ring {
    std::vector<TensorId> tensors;
    std::size_t next = 0;
  };

  std::vector<Tensor>& tensors_;
  std::int64_t class_bytes_;
  std::int64_t total_bytes_;
  std::int64_t used_ = 0;
  std::map<std::int64_t, Ring> rings_;  // by size
};

}  // namespace weft
