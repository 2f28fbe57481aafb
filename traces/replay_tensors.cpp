#include "traces/replay_tensors.h"

#include <algorithm>
#include <bit>
#include <string>

namespace weft {
namespace {

std::int64_t size_class(std::int64_t bytes) {
  constexpr std::int64_t kSmallest = 512;  // as PyTorch's CUDACachingAllocator rounds (kMinBlockSize)
  bytes = std::max(bytes, kSmallest);
  const auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)) / 8);
  const std::int64_t rounded = (bytes + step - 1) / step * step;
  return (rounded + kSmallest - 1) / kSmallest * kSmallest;
}

}  // namespace

TensorId ReplayTensors::take(Bytes bytes, std::span<const TensorId> in_use) {
  const std::int64_t size = size_class(bytes.count());
  Ring& ring = rings_[size];
  const auto count = static_cast<std::int64_t>(ring.tensors.size());
  if ((count + 1) * size > class_bytes_ || used_ + size > total_bytes_) {
    for (std::size_t i = 0; i < ring.tensors.size(); ++i) {
      const TensorId id = ring.tensors[ring.next];
      ring.next = (ring.next + 1) % ring.tensors.size();
      if (std::ranges::find(in_use, id) == in_use.end()) return id;
    }
  }
  const TensorId id{static_cast<std::uint32_t>(tensors_.size())};
  tensors_.push_back(
      {"replay " + std::to_string(size) + " B #" + std::to_string(count), Bytes(size), MemoryClass::activations});
  ring.tensors.push_back(id);
  used_ += size;
  return id;
}

}  // namespace weft
