#include "workloads/sequence_split.h"

#include <algorithm>

namespace weft {

namespace {
std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How many places of a run lie below `end`.
std::int64_t below(const PositionRun& run, std::int64_t end) {
  if (run.first >= end) return 0;
  return std::min(run.count, divide_up(end - run.first, run.stride));
}
}  // namespace

std::int64_t rows_of_rank(SequenceSplit split, std::int64_t tokens, std::uint32_t ranks) {
  if (split == SequenceSplit::zigzag && ranks > 1) return 2 * divide_up(tokens, 2 * std::int64_t{ranks});
  return divide_up(tokens, ranks);
}

Positions positions_of(SequenceSplit split, std::int64_t tokens, std::uint32_t ranks, std::uint32_t rank) {
  const std::int64_t rows = rows_of_rank(split, tokens, ranks);
  if (ranks == 1) return {{0, rows, 1}};
  switch (split) {
    case SequenceSplit::zigzag: {
      const std::int64_t part = rows / 2;
      return {{rank * part, part, 1}, {(2 * std::int64_t{ranks} - 1 - rank) * part, part, 1}};
    }
    case SequenceSplit::striped:
      return {{rank, rows, ranks}};
    case SequenceSplit::plain:
      break;
  }
  return {{rank * rows, rows, 1}};
}

std::int64_t count(const Positions& positions) {
  std::int64_t sum = 0;
  for (const PositionRun& run : positions) sum += run.count;
  return sum;
}

std::vector<std::int64_t> listed(const Positions& positions) {
  std::vector<std::int64_t> all;
  for (const PositionRun& run : positions) {
    for (std::int64_t i = 0; i < run.count; ++i) all.push_back(run.first + i * run.stride);
  }
  return all;
}

void append(Positions& positions, const Positions& more) {
  for (const PositionRun& run : more) {
    PositionRun* last = positions.empty() ? nullptr : &positions.back();
    const bool goes_on =
        last != nullptr && last->stride == run.stride && last->first + last->count * last->stride == run.first;
    if (goes_on) last->count += run.count;
    if (!goes_on) positions.push_back(run);
  }
}

std::int64_t last_below(const PositionRun& run, std::int64_t end) {
  const std::int64_t places = below(run, end);
  return places == 0 ? -1 : run.first + (places - 1) * run.stride;
}

TileCount count_tiles(const Positions& queries, std::int64_t query_tile, const Positions& keys, std::int64_t key_tile,
                      std::int64_t tokens, bool causal) {
  TileCount tiles;
  for (const PositionRun& key : keys) tiles.key_tiles += divide_up(key.count, key_tile);
  for (const PositionRun& query : queries) {
    const std::int64_t valid = below(query, tokens);
    tiles.query_tiles += divide_up(query.count, query_tile);
    for (std::int64_t first = 0; first < valid; first += query_tile) {
      const std::int64_t last = std::min(first + query_tile, valid) - 1;
      const std::int64_t furthest = query.first + last * query.stride;
      const std::int64_t end = causal ? std::min(furthest + 1, tokens) : tokens;
      for (const PositionRun& key : keys) tiles.touched += divide_up(below(key, end), key_tile);
    }
  }
  return tiles;
}

}  // namespace weft
