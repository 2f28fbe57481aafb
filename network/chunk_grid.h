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

  // Of free parts: how many, from the first on, have bytes; how many whole ones a piece holds; and the chunks of
  // `count` of them as one piece, where chunks have one slice.
  [[nodiscard]] std::uint32_t used_parts(std::uint64_t loop, std::uint32_t channel) const;
  [[nodiscard]] std::uint32_t parts_of_piece() const;
  [[nodiscard]] Piece pieces(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t count) const;

 private:
  ChunkGrid(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts, std::int64_t part_bytes,
            std::int64_t chunk_unit, ChunkOrder order);
  // Of a loop, where a channel's chunks lie: the first of all, the size of each, and where what they cover ends.
  struct Cut {
    std::int64_t begin, chunk, end;
  };
  [[nodiscard]] Cut cut(std::uint64_t loop, std::uint32_t channel) const;
  // The place of a chunk among those of its cut.
  [[nodiscard]] std::int64_t place(std::uint32_t channel, std::uint32_t part) const;

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
