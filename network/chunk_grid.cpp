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
                     std::int64_t chunk_unit, ChunkOrder order)
    : bytes_(bytes),
      part_bytes_(part_bytes),
      covered_(part_bytes > 0 ? part_bytes : bytes),
      parts_(part_bytes > 0 ? 1 : parts),
      channels_(request.channels),
      chunk_unit_(chunk_unit),
      piece_bytes_(request.piece_bytes / kLineUnit * kLineUnit),
      slices_(request.pieces_per_chunk),
      order_(order),
      share_(covered_) {
  WEFT_CHECK(piece_bytes_ > 0 && slices_ > 0 && channels_ > 0 && parts > 0 && bytes >= 0, "an empty schedule request");
  std::int64_t at_once = parts_ * channels_;
  if (order_ == ChunkOrder::by_channel) {
    share_ = round_up(divide_up(covered_, channels_), chunk_unit_);
    at_once = parts_;
  }
  loops_ = static_cast<std::uint64_t>(divide_up(share_, at_once * piece_bytes_ * slices_));
}

ChunkGrid ChunkGrid::free_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                                std::int64_t chunk_unit, ChunkOrder order) {
  return {request, bytes, parts, 0, chunk_unit, order};
}

ChunkGrid ChunkGrid::rank_parts(const ScheduleRequest& request, std::int64_t bytes, std::uint32_t parts,
                                std::int64_t part_bytes, std::int64_t chunk_unit) {
  return {request, bytes, parts, part_bytes, chunk_unit, ChunkOrder::by_loop};
}

Piece ChunkGrid::piece(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t slice) const {
  const std::int64_t largest = piece_bytes_ * slices_;
  const auto index = static_cast<std::int64_t>(loop);
  if (order_ == ChunkOrder::by_channel) {
    const std::int64_t at = index * parts_ * largest;
    const std::int64_t share = std::clamp<std::int64_t>(covered_ - channel * share_, 0, share_);
    const std::int64_t chunk = std::min(largest, round_up(divide_up(share - at, parts_), kLineUnit));
    return slice_of(channel * share_ + at + part * chunk, std::min(chunk, share - at - part * chunk), part, slice);
  }
  const std::int64_t at = index * parts_ * channels_ * largest;
  const std::int64_t chunk = std::min(largest, round_up(divide_up(covered_ - at, parts_ * channels_), chunk_unit_));
  std::int64_t place = channel;
  if (part_bytes_ == 0) place = order_ == ChunkOrder::by_part ? part * channels_ + channel : channel * parts_ + part;
  const std::int64_t begin = at + place * chunk;
  return slice_of(begin, std::min({chunk, covered_ - begin, bytes_ - begin - part * part_bytes_}), part, slice);
}

Piece ChunkGrid::slice_of(std::int64_t begin, std::int64_t bytes, std::uint32_t part, std::uint32_t slice) const {
  Piece piece;
  piece.offset_in_part = begin;
  piece.offset = begin + part * part_bytes_;
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
