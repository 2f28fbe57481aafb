// The in-switch all-reduce as NCCL's NVLS, and over several nodes its NVLSTree, cut it (src/device/all_reduce.h;
// src/enqueue.cc for the chunk).
#pragma once

#include <cstdint>

namespace weft {

// Loop `l` of a channel covers a piece a rank from `offset`; the last pieces of a message may be shorter or empty.
struct InSwitchLoop {
  std::int64_t offset = 0;
  std::int64_t piece = 0;
  std::int64_t bytes = 0;  // of all pieces
};

class InSwitchSchedule {
 public:
  static constexpr std::int64_t kLargestChunk = 128 << 10;

  // `ranks` of each of `nodes`.
  InSwitchSchedule(std::int64_t bytes, std::uint32_t ranks, std::uint32_t channels, std::uint32_t nodes = 1);

  [[nodiscard]] std::uint32_t loops() const { return loops_; }
  [[nodiscard]] InSwitchLoop loop(std::uint32_t channel, std::uint32_t index) const;

 private:
  std::int64_t bytes_;
  std::int64_t ranks_;
  std::int64_t channels_;
  std::int64_t chunk_;
  std::uint32_t loops_;
};

}  // namespace weft
