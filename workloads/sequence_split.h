// Which places of a sequence each of the GPUs that share it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// plain: neighbours stay together. zigzag: of 2N parts, the r-th and the r-th from the end (Megatron's context
// parallelism). striped: every N-th token (Brandon et al. 2023, "Striped Attention"). The last two give all the same
// work under a causal mask.
enum class SequenceSplit { plain, zigzag, striped };

// first, first + stride, ...
struct PositionRun {
  std::int64_t first = 0, count = 0, stride = 1;
};
using Positions = std::vector<PositionRun>;  // by row

// Rows of each rank: as many for all, so the last may hold places beyond the sequence, which nobody looks at.
[[nodiscard]] std::int64_t rows_of_rank(SequenceSplit split, std::int64_t tokens, std::uint32_t ranks);
[[nodiscard]] Positions positions_of(SequenceSplit split, std::int64_t tokens, std::uint32_t ranks, std::uint32_t rank);

[[nodiscard]] std::int64_t count(const Positions& positions);
[[nodiscard]] std::vector<std::int64_t> listed(const Positions& positions);
void append(Positions& positions, const Positions& more);

// The furthest place of a run below `end`; -1: none.
[[nodiscard]] std::int64_t last_below(const PositionRun& run, std::int64_t end);

// Of the tiles of scores between `queries` and `keys`, cut run by run, those in which somebody looks at somebody.
struct TileCount {
  std::int64_t query_tiles = 0;  // of all queries
  std::int64_t key_tiles = 0;    // of all keys
  std::int64_t touched = 0;
};
[[nodiscard]] TileCount count_tiles(const Positions& queries, std::int64_t query_tile, const Positions& keys,
                                    std::int64_t key_tile, std::int64_t tokens, bool causal);

}  // namespace weft
