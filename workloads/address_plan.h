// Where the tensors of a graph lie in a GPU's memory and when they are there. Temporaries are freed after their last
// use and their memory is used again, as PyTorch's caching allocator does, so that reuse in the L2 is what it would be.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "workloads/graph.h"

namespace weft {

// Not 0, so that an address that was never given shows.
inline constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 28;

// Best fit over one growing range, lowest address first among equals; neighbours merge when freed. Sizes are rounded up
// to kGranularity, which is also the alignment (kMinBlockSize in c10/cuda/CUDACachingAllocator.cpp).
class DeviceAllocator {
 public:
  static constexpr std::uint64_t kGranularity = 512;

  explicit DeviceAllocator(std::uint64_t first_address) : end_(first_address) {}
  [[nodiscard]] static std::uint64_t rounded(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes);  // bytes of 0 take one granule
  void release(std::uint64_t address);                        // as allocate() returned it
  [[nodiscard]] std::uint64_t end() const { return end_; }    // above every address ever given

 private:
  std::uint64_t end_;
  std::map<std::uint64_t, std::uint64_t> free_;  // address to size
  std::map<std::uint64_t, std::uint64_t> used_;
};

struct AddressPlan {
  struct Event {
    std::size_t node = 0;  // at the start of this node; the number of nodes: after the last one
    TensorId tensor;
    Bytes bytes;  // rounded to the allocator's granularity; negative: freed
    bool persistent = false;
  };
  std::vector<std::uint64_t> addresses;  // by tensor, views included
  std::vector<Event> events;             // ascending by node, frees before allocations
  std::uint64_t end = 0;
};

// Parameters, gradients and optimizer state are allocated first and stay; a tensor that is read before it is written is
// there from the start; every other one from its first to its last use (or as long as it is held), in launch order.
// Tensors nobody uses get none.
[[nodiscard]] AddressPlan plan_addresses(const Graph& graph);

// The operation of a node with its operands at their addresses; stream, waits and a collective's group are the
// caller's. A copy that names no address takes the first one.
[[nodiscard]] ProgramOp place(const Node& node, const AddressPlan& plan);

}  // namespace weft
