// Identifiers as types: an index into one kind of table cannot be used for another.
#pragma once

#include <compare>
#include <cstdint>

namespace weft {

template <class Tag>
struct Id {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using GpuId = Id<struct GpuIdTag>;        // a GPU of the simulated system, 0 .. gpus-1
using OpId = Id<struct OpIdTag>;          // an operation of a Graph or of a Program
using TensorId = Id<struct TensorIdTag>;  // a tensor of a Graph
using StreamId = Id<struct StreamIdTag>;  // a stream of a Program

}  // namespace weft
