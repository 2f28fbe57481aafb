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

ChunkGrid::Cut ChunkGrid::cut(std::uint64_t loop, std::uint32_t channel) const {
  const std::int64_t largest = piece_bytes_ * slices_;
  const auto index = static_cast<std::int64_t>(loop);
  if (order_ == ChunkOrder::by_channel) {
    const std::int64_t share = channel * share_;
    const std::int64_t begin = share + index * parts_ * largest;
    const std::int64_t end = std::min(share + share_, covered_);
    return {begin, std::min(largest, round_up(divide_up(std::max<std::int64_t>(1, end - begin), parts_), kLineUnit)),
            end};
  }
  const std::int64_t begin = index * parts_ * channels_ * largest;
  return {begin, std::min(largest, round_up(divide_up(covered_ - begin, parts_ * channels_), chunk_unit_)), covered_};
}

std::int64_t ChunkGrid::place(std::uint32_t channel, std::uint32_t part) const {
  if (order_ == ChunkOrder::by_channel) return part;
  if (part_bytes_ > 0) return channel;
  return order_ == ChunkOrder::by_part ? part * channels_ + channel : channel * parts_ + part;
}

std::uint32_t ChunkGrid::used_parts(std::uint64_t loop, std::uint32_t channel) const {
  const Cut cut = this->cut(loop, channel);
  const std::int64_t chunks = divide_up(std::max<std::int64_t>(0, cut.end - cut.begin), cut.chunk);
  const std::int64_t apart = order_ == ChunkOrder::by_part ? channels_ : 1;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(divide_up(chunks - place(channel, 0), apart), 0, parts_));
}

std::uint32_t ChunkGrid::parts_of_piece() const {
  return static_cast<std::uint32_t>(piece_bytes_ / std::max<std::int64_t>(1, cut(0, 0).chunk));
}

Piece ChunkGrid::pieces(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t count) const {
  WEFT_CHECK(order_ != ChunkOrder::by_part, "pieces of several parts that are no neighbours");
  const Cut cut = this->cut(loop, channel);
  Piece piece;
  piece.offset = piece.offset_in_part = cut.begin + place(channel, part) * cut.chunk;
  piece.bytes = std::clamp<std::int64_t>(cut.end - piece.offset, 0, count * cut.chunk);
  return piece;
}

Piece ChunkGrid::piece(std::uint64_t loop, std::uint32_t channel, std::uint32_t part, std::uint32_t slice) const {
  const Cut cut = this->cut(loop, channel);
  Piece piece;
  piece.offset_in_part = cut.begin + place(channel, part) * cut.chunk;
  piece.offset = piece.offset_in_part + part * part_bytes_;
  const std::int64_t bytes = std::min({cut.chunk, cut.end - piece.offset_in_part, bytes_ - piece.offset});
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
