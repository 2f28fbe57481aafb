#include "network/in_switch_schedule.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::int64_t kPieceUnit = 128;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The chunk shrinks with the loops of it that a message has: 128 KiB for 64 or more, 64 KiB for 8 or more, 32 KiB for 2
// or more, else 16 KiB.
std::int64_t chunk_of(std::int64_t bytes, std::int64_t at_once) {
  std::int64_t chunk = InSwitchSchedule::kLargestChunk;
  if (bytes < 64 * at_once * chunk) chunk = 64 << 10;
  if (bytes < 8 * at_once * chunk) chunk = std::min<std::int64_t>(chunk, 32 << 10);
  if (bytes < 2 * at_once * chunk) chunk = std::min<std::int64_t>(chunk, 16 << 10);
  return chunk;
}

// Of several nodes: 128 KiB, or 64 KiB from four nodes on; less for a message of fewer than four loops, or one.
std::int64_t tree_chunk_of(std::int64_t bytes, std::int64_t at_once, std::uint32_t nodes) {
  std::int64_t chunk = nodes >= 4 ? 64 << 10 : InSwitchSchedule::kLargestChunk;
  if (bytes < 4 * at_once * chunk) chunk = std::min<std::int64_t>(chunk, 64 << 10);
  if (bytes < at_once * chunk) chunk = std::min<std::int64_t>(chunk, 32 << 10);
  return chunk;
}

}  // namespace

InSwitchSchedule::InSwitchSchedule(std::int64_t bytes, std::uint32_t ranks, std::uint32_t channels, std::uint32_t nodes)
    : bytes_(bytes),
      ranks_(ranks),
      channels_(channels),
      chunk_(nodes > 1 ? tree_chunk_of(bytes, std::int64_t{ranks} * channels, nodes)
                       : chunk_of(bytes, std::int64_t{ranks} * channels)),
      loops_(static_cast<std::uint32_t>(divide_up(bytes, chunk_ * ranks_ * channels_))) {
  WEFT_CHECK(bytes > 0 && ranks > 0 && channels > 0, "an in-switch all-reduce of something by someone");
}

InSwitchLoop InSwitchSchedule::loop(std::uint32_t channel, std::uint32_t index) const {
  const std::int64_t at = index * chunk_ * ranks_ * channels_;
  InSwitchLoop loop;
  loop.piece = std::min(chunk_, divide_up(divide_up(bytes_ - at, ranks_ * channels_), kPieceUnit) * kPieceUnit);
  loop.offset = at + channel * ranks_ * loop.piece;
  loop.bytes = std::clamp<std::int64_t>(bytes_ - loop.offset, 0, ranks_ * loop.piece);
  return loop;
}

}  // namespace weft
