#include "network/chunk_grid.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t unit) { return divide_up(a, unit) * unit; }

// NCCL cuts no slice below a 32nd of the largest (src/device/prims_simple.h, genericOp).
constexpr std::int64_t kSmallestSliceShare = 32;

}  // namespace

ChunkGrid::ChunkGrid(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts, std::int64_t part_bytes,
                     std::int64_t chunk_unit)
    : bytes_(bytes),
      part_bytes_(part_bytes),
      covered_(part_bytes > 0 ? part_bytes : bytes),
      parts_(part_bytes > 0 ? 1 : parts),
      channels_(request.channels),
      chunk_unit_(chunk_unit),
      piece_bytes_(request.piece_bytes / kLineUnit * kLineUnit),
      slices_(request.pieces_per_chunk) {
  WEFT_CHECK(piece_bytes_ > 0 && slices_ > 0 && channels_ > 0 && parts > 0 && bytes >= 0, "an empty schedule request");
  loops_ = static_cast<std::uint64_t>(divide_up(covered_, parts_ * channels_ * piece_bytes_ * slices_));
}

ChunkGrid ChunkGrid::free_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                                std::int64_t chunk_unit) {
  return {request, bytes, parts, 0, chunk_unit};
}

ChunkGrid ChunkGrid::rank_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                                std::int64_t part_bytes, std::int64_t chunk_unit) {
  return {request, bytes, parts, part_bytes, chunk_unit};
}

std::int64_t ChunkGrid::loop_begin(std::uint64_t loop) const {
  return static_cast<std::int64_t>(loop) * parts_ * channels_ * piece_bytes_ * slices_;
}

std::int64_t ChunkGrid::chunk(std::int64_t begin) const {
  return std::min(piece_bytes_ * slices_, round_up(divide_up(covered_ - begin, parts_ * channels_), chunk_unit_));
}

std::uint32_t ChunkGrid::used_parts(std::uint64_t loop, std::uint32_t channel) const {
  const std::int64_t at = loop_begin(loop);
  const std::int64_t size = chunk(at);
  const std::int64_t left = covered_ - at - channel * parts_ * size;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(divide_up(left, size), 0, parts_));
}

std::uint32_t ChunkGrid::parts_of_piece() const {
  return static_cast<std::uint32_t>(piece_bytes_ / std::max<std::int64_t>(1, chunk(0)));
}

Piece ChunkGrid::pieces(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t count) const {
  const std::int64_t at = loop_begin(loop);
  const std::int64_t size = chunk(at);
  Piece piece;
  piece.offset = piece.offset_in_part = at + (channel * parts_ + part) * size;
  piece.bytes = std::clamp<std::int64_t>(covered_ - piece.offset, 0, count * size);
  return piece;
}

Piece ChunkGrid::piece(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t slice) const {
  const std::int64_t at = loop_begin(loop);
  const std::int64_t chunk = this->chunk(at);
  Piece piece;
  piece.offset_in_part = at + (part_bytes_ > 0 ? channel : channel * parts_ + part) * chunk;
  piece.offset = piece.offset_in_part + part * part_bytes_;
  const std::int64_t bytes = std::min({chunk, covered_ - piece.offset_in_part, bytes_ - piece.offset});
  if (bytes <= 0) return piece;
  const std::int64_t slice_bytes =
      round_up(std::max(divide_up(bytes, slices_), piece_bytes_ / kSmallestSliceShare), kLineUnit);
  piece.offset += slice * slice_bytes;
  piece.offset_in_part += slice * slice_bytes;
  piece.bytes = std::clamp<std::int64_t>(bytes - slice * slice_bytes, 0, slice_bytes);
  return piece;
}

std::int64_t part_bytes_of(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts) {
  return divide_up(bytes / request.element_bytes, parts) * request.element_bytes;
}

}  // namespace weft
