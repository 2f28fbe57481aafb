// Kernels of attention that keep no scores, after FlashAttention-2 (Dao-AILab/flash-attention,
// csrc/flash_attn/src/flash_fwd_launch_template.h and flash_bwd_launch_template.h: tiles, threads, shared memory).
// Registers and the operations a score besides its products are counted by hand.
#pragma once

#include "workloads/single_sample/sample_split.h"

namespace weft {

// A block of keys and values, and the queries that look at it.
struct AttentionBlock {
  AttentionGeometry geometry;
  Stack query, key, value;
  Positions queries, keys;
  bool first = true, last = true;  // of the blocks that these queries see
};

// What is kept of attention for its backward pass, and between blocks: sums in FP32, and two numbers a row.
struct AttentionState {
  TensorId sums;        // [rows][heads * size] in FP32; only with several blocks
  TensorId statistics;  // [heads][2][rows]
  TensorId output;      // [rows][heads * size]
};
// `several`: blocks come one after another.
[[nodiscard]] AttentionState new_state(TrainingStep& step, const AttentionGeometry& geometry, std::int64_t rows,
                                       bool several);
// Whether anybody of `queries` looks at anybody of `keys`.
[[nodiscard]] bool looks(const AttentionGeometry& geometry, const Positions& queries, const Positions& keys);
void attend_block(TrainingStep& step, const AttentionBlock& block, const AttentionState& state);

// The backward pass: prepare, then each block, then finish.
struct AttentionGradient {
  TensorId output_gradient;  // [rows][heads * size]
  TensorId row_products;     // [heads][rows]
  TensorId query_sums;       // [rows][heads * size] in FP32
};
[[nodiscard]] AttentionGradient prepare_gradient(TrainingStep& step, const AttentionGeometry& geometry,
                                                 std::int64_t rows, const AttentionState& state,
                                                 TensorId output_gradient);
// `key_gradient` and `value_gradient` are written.
void attend_block_backward(TrainingStep& step, const AttentionBlock& block, const AttentionState& state,
                           const AttentionGradient& gradient, const Stack& key_gradient, const Stack& value_gradient);
// The queries' gradient in the step's precision.
[[nodiscard]] TensorId finish_gradient(TrainingStep& step, std::int64_t elements, const AttentionGradient& gradient);

// Attention of a whole sequence on one GPU, or of the heads that it has.
[[nodiscard]] Matrix attend_whole(TrainingStep& step, const AttentionGeometry& geometry, const Positions& positions,
                                  const Matrix& query, const Matrix& key, const Matrix& value);

// The heads of a matrix as a stack; keys and values stand for several heads of the queries.
[[nodiscard]] Stack query_heads(const AttentionGeometry& geometry, TensorId tensor, std::int64_t rows);
[[nodiscard]] Stack key_heads(const AttentionGeometry& geometry, TensorId tensor, std::int64_t rows,
                              std::int64_t offset = 0);

}  // namespace weft
