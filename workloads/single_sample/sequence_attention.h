// Attention of a sequence whose rows are distributed: query, key and value of each rank's rows in, context of the same
// rows out; forward and backward.
#pragma once

#include "workloads/single_sample/sample_split.h"

namespace weft {

// Who takes part in one way of distributing, and which places the rows of each of them have.
struct SequenceRanks {
  std::vector<std::uint32_t> gpus;
  std::uint32_t rank = 0;
  std::vector<Positions> positions;  // by rank
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(gpus.size()); }
  [[nodiscard]] const Positions& own() const { return positions[rank]; }
};

struct Projected {
  Matrix query, key, value;
};

// Scores = nt, softmax of whole rows, context = all; backward nt, tn, all, tn.
[[nodiscard]] Matrix product_attention(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                                       const SequenceRanks& ranks, const Projected& in);
// Keys go round, then values; rows of scores are kept.
[[nodiscard]] Matrix ring_self_attention(TrainingStep& step, const SampleSplit& split,
                                         const AttentionGeometry& geometry, const SequenceRanks& ranks,
                                         const Projected& in);
// Keys and values go round together, no scores are kept; with one rank plain attention. Backward their gradients go
// round beside them, in FP32.
[[nodiscard]] Matrix ring_attention(TrainingStep& step, const AttentionGeometry& geometry, const SequenceRanks& ranks,
                                    const Projected& in);
// Keys and values are gathered, forward and again backward, and their gradients reduce-scattered.
[[nodiscard]] Matrix gathered_attention(TrainingStep& step, const AttentionGeometry& geometry,
                                        const SequenceRanks& ranks, const Projected& in);
// From some rows of all heads to all rows of some heads, and back: an all-to-all each way. `heads` of the matrix.
[[nodiscard]] Matrix rows_to_heads(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in,
                                   std::int64_t batch);
[[nodiscard]] Matrix heads_to_rows(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in,
                                   std::int64_t batch);

// Keys and values of a rank in one buffer, [2][rows][columns].
[[nodiscard]] TensorId pack_keys(TrainingStep& step, const Projected& in);
// Takes the gradient of a packed buffer apart, from `bytes` an element to the step's precision.
void unpack_gradient(TrainingStep& step, const Projected& in, TensorId packed);

}  // namespace weft
