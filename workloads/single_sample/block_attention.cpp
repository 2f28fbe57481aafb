#include "workloads/single_sample/block_attention.h"

#include <algorithm>
#include <cmath>

namespace weft {

namespace {

constexpr double kForwardOperations = 5;   // a score: scale and subtract, compare, add, convert
constexpr double kBackwardOperations = 7;  // a score: the same, subtract, multiply twice
constexpr std::uint32_t kRegisters = 255;  // the most there are: accumulators fill them
constexpr std::uint32_t kBackwardSharedMemory = 144 << 10;

struct Tiles {
  std::int64_t query = 128, key = 128;
};

// Numbers of four bytes take half as many keys.
Tiles forward_tiles(const TrainingStep& step, std::int64_t head_size) {
  return {128, (head_size <= 64 ? 128 : 64) * 2 / step.precision().element_bytes};
}
Tiles backward_tiles(const TrainingStep& step, std::int64_t head_size) {
  return {(head_size <= 64 ? 128 : 64) * 2 / step.precision().element_bytes, 128};
}

std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

struct Work {
  TileCount tiles;
  double scores = 0;    // computed, of all heads, whole tiles
  double of_block = 0;  // tiles that a thread block goes through, on average
};

Work work_of(const AttentionBlock& block, const Tiles& tile, bool by_keys) {
  const AttentionGeometry& g = block.geometry;
  Work work;
  work.tiles = count_tiles(block.queries, tile.query, block.keys, tile.key, g.tokens, g.causal);
  const auto touched = static_cast<double>(work.tiles.touched);
  work.scores = touched * static_cast<double>(tile.query * tile.key * block.query.count);
  work.of_block = touched / static_cast<double>(by_keys ? work.tiles.key_tiles : work.tiles.query_tiles);
  return work;
}

// What each thread block streams of a matrix of its head: the share of it that it looks at.
TensorUse streamed(const Stack& stack, std::int64_t element_bytes, std::uint32_t blocks_a_matrix, double share) {
  const std::int64_t bytes = stack.elements() * element_bytes;
  TensorUse use = sliced(stack.tensor, static_cast<std::uint64_t>(stack.offset * element_bytes) / 128 * 128,
                         static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(stack.count),
                         blocks_a_matrix * narrow(stack.repeat), narrow(stack.count));
  const auto part = static_cast<std::uint64_t>(std::ceil(static_cast<double>(use.bytes_per_block) * share));
  use.bytes_per_block = std::min(use.bytes_per_block, std::max<std::uint64_t>(part, 32));
  return use;
}

TensorUse cut(TensorId tensor, std::int64_t first, std::int64_t bytes, std::uint64_t blocks) {
  return sliced(tensor, static_cast<std::uint64_t>(first) / 128 * 128, static_cast<std::uint64_t>(bytes), blocks);
}

KernelNode kernel_of(const TrainingStep& step, std::int64_t tiles, std::int64_t heads, std::uint32_t threads,
                     std::uint32_t shared_memory, const Work& work) {
  KernelNode kernel;
  kernel.shape.grid = {narrow(tiles), narrow(heads), 1};
  kernel.shape.block = {threads, 1, 1};
  kernel.shape.registers_per_thread = kRegisters;
  kernel.shape.shared_memory_bytes =
      step.block_shared_memory() == 0 ? shared_memory : std::min(shared_memory, step.block_shared_memory());
  kernel.iterations = narrow(std::max<std::int64_t>(1, std::llround(work.of_block)));
  kernel.stages = 2;
  kernel.barrier = true;
  kernel.flops[static_cast<std::size_t>(Pipe::sfu)] = work.scores;
  return kernel;
}

BlockAttention values_of(const AttentionBlock& block, const AttentionState& state) {
  const AttentionGeometry& g = block.geometry;
  const std::int64_t rows = block.query.rows;
  return {block.query,
          block.key,
          block.value,
          {state.statistics, block.query.count, 2, rows, 0, 2 * rows, rows},
          1 / std::sqrt(static_cast<float>(g.head_size)),
          {block.queries, block.keys, g.tokens, g.causal},
          block.first,
          block.last};
}

}  // namespace

Stack query_heads(const AttentionGeometry& geometry, TensorId tensor, std::int64_t rows) {
  return beside(tensor, rows, geometry.batch * geometry.heads, geometry.head_size);
}

Stack key_heads(const AttentionGeometry& geometry, TensorId tensor, std::int64_t rows, std::int64_t offset) {
  Stack stack = beside(tensor, rows, geometry.batch * geometry.key_heads, geometry.head_size, offset);
  stack.repeat = geometry.heads / geometry.key_heads;
  return stack;
}

AttentionState new_state(TrainingStep& step, const AttentionGeometry& geometry, std::int64_t rows, bool several) {
  const std::int64_t heads = geometry.batch * geometry.heads;
  const std::int64_t elements = rows * heads * geometry.head_size;
  AttentionState state;
  if (several) state.sums = step.temporary("context_sums", 4 * elements, MemoryClass::workspace);
  state.statistics = step.temporary("softmax_statistics", 4 * 2 * heads * rows, MemoryClass::activations);
  state.output = step.activation("context", elements);
  return state;
}

bool looks(const AttentionGeometry& geometry, const Positions& queries, const Positions& keys) {
  std::int64_t furthest = -1;
  for (const PositionRun& run : queries) furthest = std::max(furthest, last_below(run, geometry.tokens));
  const std::int64_t end = geometry.causal ? furthest + 1 : geometry.tokens;
  return furthest >= 0 &&
         std::any_of(keys.begin(), keys.end(), [&](const PositionRun& run) { return last_below(run, end) >= 0; });
}

void attend_block(TrainingStep& step, const AttentionBlock& block, const AttentionState& state) {
  const std::int64_t size = block.geometry.head_size;
  const std::int64_t heads = block.query.count;
  const std::int64_t element_bytes = step.precision().element_bytes;
  const Tiles tile = forward_tiles(step, size);
  const Work work = work_of(block, tile, false);
  const auto shared = narrow((tile.query + 2 * tile.key) * size * element_bytes);
  KernelNode kernel = kernel_of(step, work.tiles.query_tiles, heads, 128, shared, work);
  kernel.attention = AttentionPass::forward;
  kernel.write_at_end = true;
  kernel.flops[static_cast<std::size_t>(step.precision().gemm_pipe)] += 4 * work.scores * static_cast<double>(size);
  kernel.flops[static_cast<std::size_t>(Pipe::fp32)] += kForwardOperations * work.scores;

  const std::uint64_t blocks = kernel.shape.blocks();
  const std::int64_t elements = block.query.elements();
  const double share = work.of_block / static_cast<double>(work.tiles.key_tiles);
  const auto tiles = narrow(work.tiles.query_tiles);
  kernel.reads = {cut(block.query.tensor, block.query.offset * element_bytes, elements * element_bytes, blocks),
                  streamed(block.key, element_bytes, tiles, share), streamed(block.value, element_bytes, tiles, share)};
  const TensorUse statistics = cut(state.statistics, 0, 4 * 2 * heads * block.query.rows, blocks);
  if (!block.first) {
    kernel.reads.push_back(cut(state.sums, 0, 4 * elements, blocks));
    kernel.reads.push_back(statistics);
  }
  kernel.writes = {statistics, block.last ? cut(state.output, 0, elements * element_bytes, blocks)
                                          : cut(state.sums, 0, 4 * elements, blocks)};
  const OpId op = step.emit("attention_forward", std::move(kernel));
  step.computes(op, [values = values_of(block, state), state, rows = block.query.rows,
                     g = block.geometry](TensorValues& numbers) {
    attend(numbers, values, query_heads(g, state.sums, rows), query_heads(g, state.output, rows));
  });
}

AttentionGradient prepare_gradient(TrainingStep& step, const AttentionGeometry& geometry, std::int64_t rows,
                                   const AttentionState& state, TensorId output_gradient) {
  const std::int64_t heads = geometry.batch * geometry.heads;
  const std::int64_t elements = rows * heads * geometry.head_size;
  AttentionGradient gradient{output_gradient, step.temporary("row_products", 4 * heads * rows, MemoryClass::workspace),
                             step.temporary("query_gradient_sums", 4 * elements, MemoryClass::workspace)};
  const OpId op = step.elementwise("attention_row_products", elements, {output_gradient, state.output},
                                   {gradient.row_products, gradient.query_sums}, 2);
  step.computes(op, [=, sums = gradient.query_sums, products = gradient.row_products](TensorValues& values) {
    row_products(values, query_heads(geometry, output_gradient, rows), query_heads(geometry, state.output, rows),
                 products);
    std::fill_n(values.data(sums), elements, 0.0F);
  });
  return gradient;
}

void attend_block_backward(TrainingStep& step, const AttentionBlock& block, const AttentionState& state,
                           const AttentionGradient& gradient, const Stack& key_gradient, const Stack& value_gradient) {
  const std::int64_t size = block.geometry.head_size;
  const std::int64_t heads = block.query.count;
  const std::int64_t element_bytes = step.precision().element_bytes;
  const Tiles tile = backward_tiles(step, size);
  const Work work = work_of(block, tile, true);
  KernelNode kernel = kernel_of(step, work.tiles.key_tiles, heads, 256, kBackwardSharedMemory, work);
  kernel.attention = AttentionPass::backward;
  kernel.flops[static_cast<std::size_t>(step.precision().gemm_pipe)] += 10 * work.scores * static_cast<double>(size);
  kernel.flops[static_cast<std::size_t>(Pipe::fp32)] += kBackwardOperations * work.scores;

  const std::uint64_t blocks = kernel.shape.blocks();
  const double share = work.of_block / static_cast<double>(work.tiles.query_tiles);
  const auto tiles = narrow(work.tiles.key_tiles);
  const std::int64_t rows = block.query.rows;
  Stack output_gradient = block.query;
  output_gradient.tensor = gradient.output_gradient;
  output_gradient.offset = 0;
  Stack query_sums = output_gradient;
  query_sums.tensor = gradient.query_sums;
  const std::int64_t key_bytes = block.key.elements() * element_bytes;
  kernel.reads = {cut(block.key.tensor, block.key.offset * element_bytes, key_bytes, blocks),
                  cut(block.value.tensor, block.value.offset * element_bytes, key_bytes, blocks),
                  streamed(block.query, element_bytes, tiles, share),
                  streamed(output_gradient, element_bytes, tiles, share),
                  streamed({state.statistics, heads, 1, rows, 0, rows, rows}, 4, tiles, share),
                  streamed({gradient.row_products, heads, 1, rows, 0, rows, rows}, 4, tiles, share)};
  const std::int64_t written = key_gradient.elements() * element_bytes;
  TensorUse added = streamed(query_sums, 4, tiles, share);
  added.atomic = true;
  kernel.writes = {added, cut(key_gradient.tensor, key_gradient.offset * element_bytes, written, blocks),
                   cut(value_gradient.tensor, value_gradient.offset * element_bytes, written, blocks)};
  const OpId op = step.emit("attention_backward", std::move(kernel));
  step.computes(op, [values = values_of(block, state), output_gradient, products = gradient.row_products, query_sums,
                     key_gradient, value_gradient](TensorValues& numbers) {
    attend_backward(numbers, values, output_gradient, products, query_sums, key_gradient, value_gradient, false);
  });
}

TensorId finish_gradient(TrainingStep& step, std::int64_t elements, const AttentionGradient& gradient) {
  const TensorId result = step.activation("query_gradient", elements);
  const OpId op = step.elementwise("convert_query_gradient", elements, {gradient.query_sums}, {result}, 0);
  step.computes(op, [=, from = gradient.query_sums](TensorValues& values) {
    copy(values, behind(from, 1, 1, elements), behind(result, 1, 1, elements));
  });
  return result;
}

Matrix attend_whole(TrainingStep& step, const AttentionGeometry& geometry, const Positions& positions,
                    const Matrix& query, const Matrix& key, const Matrix& value) {
  const std::int64_t rows = query.rows;
  const AttentionBlock block{geometry,
                             query_heads(geometry, query.tensor, rows),
                             key_heads(geometry, key.tensor, rows),
                             key_heads(geometry, value.tensor, rows),
                             positions,
                             positions};
  const AttentionState state = new_state(step, geometry, rows, false);
  attend_block(step, block, state);
  step.on_backward([&step, block, state, query, key, value, rows] {
    const AttentionGeometry& g = block.geometry;
    const AttentionGradient gradient = prepare_gradient(step, g, rows, state, step.take_gradient(state.output));
    const TensorId key_gradient = step.activation("key_gradient", key.elements());
    const TensorId value_gradient = step.activation("value_gradient", value.elements());
    attend_block_backward(step, block, state, gradient, key_heads(g, key_gradient, rows),
                          key_heads(g, value_gradient, rows));
    step.add_gradient(query.tensor, finish_gradient(step, query.elements(), gradient));
    step.add_gradient(key.tensor, key_gradient);
    step.add_gradient(value.tensor, value_gradient);
  });
  return {state.output, rows, query.columns};
}

}  // namespace weft
