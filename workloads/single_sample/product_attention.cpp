#include <cmath>

#include "workloads/single_sample/block_attention.h"
#include "workloads/single_sample/distributed_products.h"
#include "workloads/single_sample/sequence_attention.h"

namespace weft {

namespace {

struct Kept {
  AttentionGeometry geometry;
  SampleSplit split;
  Projected in;
  Stack probabilities;
  Matrix out;
  float scale = 1;
};

// Heads one after another to heads beside each other in each row.
TensorId heads_into_rows(TrainingStep& step, const AttentionGeometry& g, TensorId heads, std::int64_t rows) {
  const std::int64_t count = g.batch * g.heads;
  if (count == 1) return heads;
  const TensorId result = step.activation("heads_of_rows", rows * count * g.head_size);
  rearrange(step, "join_heads", {{behind(heads, count, rows, g.head_size), beside(result, rows, count, g.head_size)}});
  return result;
}

void backward(TrainingStep& step, const Kept& kept) {
  const AttentionGeometry& g = kept.geometry;
  const std::int64_t rows = kept.out.rows;
  const TensorId gradient = step.take_gradient(kept.out.tensor);
  const Stack output_gradient = query_heads(g, gradient, rows);
  const Stack query = query_heads(g, kept.in.query.tensor, rows);
  const Stack key = query_heads(g, kept.in.key.tensor, rows);
  const Stack value = query_heads(g, kept.in.value.tensor, rows);
  const TensorId of_probabilities = product_nt(step, kept.split, output_gradient, value);
  step.add_gradient(kept.in.value.tensor, product_tn(step, kept.split, kept.probabilities, output_gradient));
  Stack of_scores = kept.probabilities;
  of_scores.tensor = row_softmax_backward(step, kept.probabilities, of_probabilities, kept.scale);
  step.add_gradient(kept.in.query.tensor,
                    heads_into_rows(step, g, product_all(step, kept.split, of_scores, key), rows));
  step.add_gradient(kept.in.key.tensor, product_tn(step, kept.split, of_scores, query));
}

}  // namespace

Matrix product_attention(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                         const SequenceRanks& ranks, const Projected& in) {
  const std::int64_t rows = in.query.rows;
  const std::int64_t heads = geometry.batch * geometry.heads;
  Kept kept{geometry, split, in, {}, {}, 1 / std::sqrt(static_cast<float>(geometry.head_size))};
  Positions keys;
  for (const Positions& positions : ranks.positions) append(keys, positions);
  const TensorId scores =
      product_nt(step, split, query_heads(geometry, in.query.tensor, rows), query_heads(geometry, in.key.tensor, rows));
  kept.probabilities = behind(scores, heads, rows, rows * ranks.size());
  kept.probabilities.tensor =
      row_softmax(step, kept.probabilities, kept.scale, {ranks.own(), keys, geometry.tokens, geometry.causal});
  const TensorId context = product_all(step, split, kept.probabilities, query_heads(geometry, in.value.tensor, rows));
  kept.out = {heads_into_rows(step, geometry, context, rows), rows, in.query.columns};
  step.on_backward([&step, kept] { backward(step, kept); });
  return kept.out;
}

}  // namespace weft
