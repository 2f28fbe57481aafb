#include "network/user_algorithm.h"

#include <fmt/format.h>

#include <algorithm>

#include "network/generated_schedule.h"
#include "network/schedule_check.h"
#include "network/user_algorithm_reader.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

using Limits = UserAlgorithmLimits;

// Where the smaller buffer is a part of the larger one, and the algorithm may use that.
bool can_be_in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter;
}

bool divides_input(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::all_to_all;
}

// A table in units of chunks, gone through once a loop; step `i` of it makes so many pieces as its chunks have.
class TableSchedule : public GeneratedSchedule {
 public:
  TableSchedule(std::shared_ptr<const UserAlgorithm> algorithm, const ScheduleRequest& request)
      : GeneratedSchedule(request),
        algorithm_(std::move(algorithm)),
        chunk_bytes_(request.bytes / algorithm_->input_chunks),
        // Chunks that are small go together, as many as a slot and its slices carry (MSCCL's maxAllowedCount).
        together_(std::max<std::int64_t>(
            1, chunk_bytes_ > 0 ? request.piece_bytes * request.pieces_per_chunk / chunk_bytes_ : 1)),
        grid_(grid_of(1)) {
    for (const UserAlgorithm::Rank& rank : algorithm_->ranks) {
      first_block_.push_back(tables_.size());
      for (const UserAlgorithm::Block& block : rank.blocks) {
        Table table{&block, {0}};
        for (const UserAlgorithm::Step& step : block.steps) {
          const auto units = static_cast<std::uint64_t>((step.count + together_ - 1) / together_);
          table.first_piece.push_back(table.first_piece.back() + (step.count == 0 ? 1 : units * grid_.slices()));
        }
        tables_.push_back(std::move(table));
      }
    }
  }

  [[nodiscard]] std::int64_t scratch_bytes(std::uint32_t rank) const override {
    return algorithm_->ranks[rank].scratch_chunks * chunk_bytes_;
  }
  [[nodiscard]] bool in_place() const override { return algorithm_->in_place; }
  [[nodiscard]] std::uint32_t blocks(std::uint32_t rank) const override {
    return static_cast<std::uint32_t>(algorithm_->ranks[rank].blocks.size());
  }
  [[nodiscard]] std::uint32_t channel(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/) const override {
    return table(rank, block).block->channel;
  }
  [[nodiscard]] std::uint64_t steps(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/) const override {
    return grid_.loops() * table(rank, block).first_piece.back();
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                  std::uint64_t index) const override {
    const Table& table = this->table(rank, block);
    const std::uint64_t loop = index / table.first_piece.back();
    const std::uint64_t in_loop = index % table.first_piece.back();
    const std::uint64_t row = row_of(table, in_loop);
    const UserAlgorithm::Step& from = table.block->steps[row];
    ScheduleStep step = from.what;
    for (std::size_t i = 0; i < step.after_count; ++i) {
      ScheduleStep::After& after = step.after.at(i);
      const Table& other = this->table(rank, after.block);
      after.steps = loop * other.first_piece.back() + other.first_piece[after.steps];
    }
    if (from.count == 0) return step;
    const std::uint64_t nth = in_loop - table.first_piece[row];
    const auto first_chunk = static_cast<std::int64_t>(nth / grid_.slices()) * together_;
    const auto chunks = std::min<std::int64_t>(together_, from.count - first_chunk);
    const Piece piece =
        (chunks == 1 ? grid_ : grid_of(chunks)).piece(loop, 0, 0, static_cast<std::uint32_t>(nth % grid_.slices()));
    if (piece.bytes == 0) return {};
    step.bytes = piece.bytes;
    const auto byte_of = [&](std::int64_t chunk) { return (chunk + first_chunk) * chunk_bytes_ + piece.offset; };
    if (step.source != ScheduleBuffer::none) step.source_offset = byte_of(step.source_offset);
    if (step.destination != ScheduleBuffer::none) step.destination_offset = byte_of(step.destination_offset);
    return step;
  }

  [[nodiscard]] bool is_waited_for(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const override {
    return CollectiveSchedule::is_waited_for(rank, block, group);  // NOLINT(bugprone-parent-virtual-call)
  }
  [[nodiscard]] std::string describe(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                     std::uint64_t index) const override {
    const Table& table = this->table(rank, block);
    return place_of(*algorithm_, rank, block, row_of(table, index % table.first_piece.back()));
  }

 private:
  struct Table {
    const UserAlgorithm::Block* block;
    std::vector<std::uint64_t> first_piece;  // by step, and one past the end
  };

  [[nodiscard]] const Table& table(std::uint32_t rank, std::uint32_t block) const {
    return tables_[first_block_[rank] + block];
  }
  static std::uint64_t row_of(const Table& table, std::uint64_t piece) {
    const auto next = std::upper_bound(table.first_piece.begin(), table.first_piece.end(), piece);
    return static_cast<std::uint64_t>(next - table.first_piece.begin()) - 1;
  }
  [[nodiscard]] ChunkGrid grid_of(std::int64_t chunks) const {
    ScheduleRequest one = request();
    one.channels = 1;
    return ChunkGrid::free_parts(one, chunks * chunk_bytes_, 1, ChunkGrid::kLineUnit);
  }

  std::shared_ptr<const UserAlgorithm> algorithm_;
  std::int64_t chunk_bytes_;
  std::int64_t together_;  // chunks of one step that are moved as one
  ChunkGrid grid_;         // of one chunk
  std::vector<std::size_t> first_block_;
  std::vector<Table> tables_;
};

// What the proof relies on, and what would make it too large.
void check_table(const UserAlgorithm& algorithm) {
  const auto fail = [&](const std::string& message) { throw InputError(algorithm.file, "", message); };
  if (algorithm.in_place && !can_be_in_place(algorithm.kind)) {
    fail(fmt::format("expected an all_reduce, all_gather or reduce_scatter in place, got {}",
                     to_string(algorithm.kind)));
  }
  const auto ranks = static_cast<std::int64_t>(algorithm.ranks.size());
  if (divides_input(algorithm.kind) && algorithm.input_chunks % ranks != 0) {
    fail(fmt::format("expected chunks to be a multiple of {} ranks, got {}", ranks, algorithm.input_chunks));
  }
  if (algorithm.kind == CollectiveKind::send_receive && ranks != 2) {
    fail(fmt::format("expected 2 ranks, got {}", ranks));
  }
  std::int64_t cells = 2 * ranks * algorithm.input_chunks;
  if (algorithm.kind == CollectiveKind::all_gather) cells *= ranks;
  for (const UserAlgorithm::Rank& rank : algorithm.ranks) cells += rank.scratch_chunks;
  if (cells > Limits::kCells) {
    fail(fmt::format("expected at most {} chunks in all buffers, got {}", Limits::kCells, cells));
  }
  std::int64_t moves = 0;
  for (std::uint32_t r = 0; r < algorithm.ranks.size(); ++r) {
    const auto& blocks = algorithm.ranks[r].blocks;
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t s = 0; s < blocks[b].steps.size(); ++s) {
        const ScheduleStep& step = blocks[b].steps[s].what;
        moves += blocks[b].steps[s].count;
        for (std::size_t i = 0; i < step.after_count; ++i) {
          const ScheduleStep::After& after = step.after.at(i);
          if (after.block < blocks.size() && after.steps <= blocks[after.block].steps.size()) continue;
          throw InputError(algorithm.file, place_of(algorithm, r, b, s),
                           fmt::format("expected to wait for a step that exists, got block {}, step {}", after.block,
                                       after.steps - 1));
        }
      }
    }
  }
  if (moves > Limits::kMoves) {
    fail(fmt::format("expected steps that move at most {} chunks in all, got {}", Limits::kMoves, moves));
  }
}

// The largest count of a step, in chunks.
std::int64_t largest_count(const UserAlgorithm& algorithm) {
  std::int64_t largest = 1;
  for (const UserAlgorithm::Rank& rank : algorithm.ranks) {
    for (const UserAlgorithm::Block& block : rank.blocks) {
      for (const UserAlgorithm::Step& step : block.steps) largest = std::max<std::int64_t>(largest, step.count);
    }
  }
  return largest;
}

// Whether each step's chunks are one chunk to cut into pieces, and one loop is enough.
bool is_small(const UserAlgorithm& algorithm, const ScheduleRequest& request) {
  return request.bytes / algorithm.input_chunks * largest_count(algorithm) <=
         request.piece_bytes * request.pieces_per_chunk;
}

// Proves the algorithm where the chunks of a step go together, which must be right, and where each goes for itself in
// two loops of which the second is shorter.
void prove(UserAlgorithm& algorithm, std::uint32_t pieces_per_chunk, std::uint32_t slots) {
  const std::shared_ptr<const UserAlgorithm> borrowed(&algorithm, [](const UserAlgorithm*) {});
  constexpr std::int64_t kElement = ChunkGrid::kLineUnit;  // one integer for each
  ScheduleRequest large{.kind = algorithm.kind,
                        .bytes = algorithm.input_chunks * std::int64_t{pieces_per_chunk + 1} * kElement,
                        .element_bytes = kElement,
                        .ranks = static_cast<std::uint32_t>(algorithm.ranks.size()),
                        .root = algorithm.root,
                        .piece_bytes = kElement,
                        .pieces_per_chunk = pieces_per_chunk};
  ScheduleRequest small = large;
  small.piece_bytes = small.bytes * largest_count(algorithm);
  try {
    (void)check_schedule(*make_user_schedule(borrowed, small), small, slots);
  } catch (const InputError& error) {
    throw InputError(algorithm.file, "", error.what());
  }
  try {
    (void)check_schedule(*make_user_schedule(borrowed, large), large, slots);
  } catch (const InputError& error) {
    algorithm.only_small = error.what();
  }
}

}  // namespace

std::size_t UserAlgorithm::most_blocks() const {
  std::size_t most = 0;
  for (const Rank& rank : ranks) most = std::max(most, rank.blocks.size());
  return most;
}

std::string place_of(const UserAlgorithm& algorithm, std::uint32_t rank, std::uint32_t block, std::uint64_t step) {
  if (algorithm.format == UserAlgorithm::Format::json) {
    return fmt::format("/ranks/{}/blocks/{}/steps/{}", rank, block, step);
  }
  return fmt::format("gpu {}, tb {}, step {}", rank, algorithm.ranks[rank].blocks[block].id, step);
}

UserAlgorithm load_user_algorithm(const std::filesystem::path& path, std::uint32_t pieces_per_chunk,
                                  std::uint32_t slots) {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  if (!ignored && bytes > static_cast<std::uintmax_t>(Limits::kFileBytes)) {
    throw InputError(path.string(), "", fmt::format("expected at most {} B, got {} B", Limits::kFileBytes, bytes));
  }
  const std::string text = read_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool xml = first != std::string::npos && text[first] == '<';
  UserAlgorithm algorithm = xml ? read_msccl_algorithm(text, path.string()) : read_json_algorithm(text, path.string());
  check_table(algorithm);
  prove(algorithm, pieces_per_chunk, slots);
  return algorithm;
}

std::unique_ptr<CollectiveSchedule> make_user_schedule(std::shared_ptr<const UserAlgorithm> algorithm,
                                                       const ScheduleRequest& request) {
  const auto fail = [&](const std::string& message) { throw InputError(algorithm->file, "", message); };
  if (request.kind != algorithm->kind) {
    fail(fmt::format("expected to be used for {}, got {}", to_string(algorithm->kind), to_string(request.kind)));
  }
  if (request.ranks != algorithm->ranks.size()) {
    fail(fmt::format("expected a group of {}, got {}", algorithm->ranks.size(), request.ranks));
  }
  if (request.root != algorithm->root) fail(fmt::format("expected root {}, got {}", algorithm->root, request.root));
  if (request.bytes % (request.element_bytes * algorithm->input_chunks) != 0) {
    fail(fmt::format("expected {} chunks of whole elements of {} B, got {} B", algorithm->input_chunks,
                     request.element_bytes, request.bytes));
  }
  if (!algorithm->only_small.empty() && !is_small(*algorithm, request)) {
    fail(fmt::format("expected a message whose chunks go in one piece, got {} B: for larger ones {}", request.bytes,
                     algorithm->only_small));
  }
  return std::make_unique<TableSchedule>(std::move(algorithm), request);
}

}  // namespace weft
