// How a message is cut: loops over it, in each loop a chunk for every (channel, part), a chunk passed on in slices.
// As NCCL does it (src/device/all_reduce.h, runRing; src/device/prims_simple.h, genericOp).
#pragma once

#include <cstdint>

#include "network/collective_schedule.h"

namespace weft {

// Sizes and offsets in bytes. A place beyond the end of the message has no bytes.
struct Piece {
  std::int64_t offset = 0;          // in the whole message
  std::int64_t offset_in_part = 0;  // where parts belong to ranks: in its part
  std::int64_t bytes = 0;
};

class ChunkGrid {
 public:
  static constexpr std::int64_t kLineUnit = 128;

  // `bytes` in `parts` interchangeable parts, as a reduction may cut them.
  static ChunkGrid free_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                              std::int64_t chunk_unit, ChunkOrder order = ChunkOrder::by_loop);
  // `parts` parts of `part_bytes` that belong to one rank each, the last ones perhaps shorter: `bytes` in all.
  static ChunkGrid rank_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                              std::int64_t part_bytes, std::int64_t chunk_unit);

  [[nodiscard]] std::uint64_t loops() const { return loops_; }
  [[nodiscard]] std::uint32_t slices() const { return slices_; }
  [[nodiscard]] Piece piece(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t slice) const;

 private:
  ChunkGrid(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts, std::int64_t part_bytes,
            std::int64_t chunk_unit, ChunkOrder order);

  // Of a chunk of `bytes` from `begin` of what the loops cover.
  [[nodiscard]] Piece slice_of(std::int64_t begin, std::int64_t bytes, std::uint32_t part, std::uint32_t slice) const;

  std::int64_t bytes_;
  std::int64_t part_bytes_;  // 0: free parts
  std::int64_t covered_;     // by the loops: the message, or one part of it
  std::int64_t parts_;       // of `covered_`
  std::int64_t channels_;
  std::int64_t chunk_unit_;
  std::int64_t piece_bytes_;
  std::uint32_t slices_;
  ChunkOrder order_;
  std::int64_t share_;  // of a channel, by_channel; else of all
  std::uint64_t loops_;
};

// Bytes of one of `parts` equal parts of whole elements; the last parts may be shorter or empty.
[[nodiscard]] std::int64_t part_bytes_of(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts);

}  // namespace weft
