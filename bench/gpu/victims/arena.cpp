#include "bench/gpu/victims/arena.h"

#include <stdexcept>

#include "bench/gpu/device/small_kernels.h"

namespace weft::gpu_probe {

void* Arena::take_bytes(std::size_t bytes) {
  constexpr std::size_t kAlignment = 1024;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > memory_.bytes() - used_)
    throw std::runtime_error("needs more than the " + std::to_string(memory_.bytes() >> 20) + " MiB of device memory " +
                             "that victims have");
  void* const begin = memory_.data() + used_;
  used_ += rounded;
  return begin;
}

Buffers Arena::take(std::int64_t elements, Element element, unsigned copies) {
  Buffers out;
  const auto bytes = static_cast<std::size_t>(elements * bytes_of(element));
  for (unsigned copy = 0; copy < copies; ++copy) {
    void* const data = take_bytes(bytes);
    fill_random(data, bytes, element, seed_++, stream_);
    out.sets.push_back(data);
  }
  return out;
}

}  // namespace weft::gpu_probe
