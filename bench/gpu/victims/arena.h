// Device memory for one victim after another, taken once: nothing is allocated between measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/gpu/device/memory.h"
#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

// Buffers of the same size that take turns.
struct Buffers {
  std::vector<void*> sets;
  template <class T>
  [[nodiscard]] T* at(unsigned turn) const {
    return static_cast<T*>(sets[turn % sets.size()]);
  }
};

class Arena {
 public:
  Arena(std::size_t bytes, cudaStream_t stream) : memory_(bytes), stream_(stream) {}

  // All that was taken before is free again.
  void reset() { used_ = 0; }
  // Random numbers of that type, filled on the stream. Throws std::runtime_error where it does not fit.
  [[nodiscard]] Buffers take(std::int64_t elements, Element element, unsigned copies);
  [[nodiscard]] void* take_bytes(std::size_t bytes);
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  DeviceArray<unsigned char> memory_;
  cudaStream_t stream_;
  std::size_t used_ = 0;
  unsigned seed_ = 1;
};

}  // namespace weft::gpu_probe
