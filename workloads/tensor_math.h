// What kernels do to numbers, on stacks of matrices (tensor_values.h).
#pragma once

#include <vector>

#include "workloads/sequence_split.h"
#include "workloads/tensor_values.h"

namespace weft {

// c = scale * a * b, or added to c; of a and b their transposes. Matrix i of c comes of matrix i of a and of b.
struct ProductForm {
  bool transpose_a = false, transpose_b = false;
  float scale = 1;
  bool add = false;
};
void multiply(TensorValues& values, const Stack& a, const Stack& b, const Stack& c, const ProductForm& form);

// Adds a row of numbers to each row.
void add_row(TensorValues& values, TensorId row, const Stack& to);
// to = from, or added to it; matrix by matrix.
void copy(TensorValues& values, const Stack& from, const Stack& to, bool add = false);
// to[i] = sum over n < parts of from[n * to.count + i].
void sum_parts(TensorValues& values, const Stack& from, const Stack& to, std::int64_t parts);
void column_sums(TensorValues& values, const Stack& from, TensorId to);
// max(x, 0) in place, and its gradient by the result.
void rectify(TensorValues& values, const Stack& matrix);
void rectify_gradient(TensorValues& values, const Stack& result, const Stack& gradient, const Stack& to);
// tanh(a) * sigmoid(b) of rows whose left half is a and whose right half is b, and the gradient of both.
void gate(TensorValues& values, const Stack& halves, const Stack& to);
void gate_gradient(TensorValues& values, const Stack& halves, const Stack& gradient, const Stack& to);

// Who may look at whom, by places in the sequence: below `tokens`, and not ahead where it is causal.
struct AttentionMask {
  Positions queries, keys;  // by row and by column of the scores
  std::int64_t tokens = 0;
  bool causal = false;
};

// Rows of `scores`, times `scale`, to probabilities; rows without any allowed key become zero.
void masked_softmax(TensorValues& values, const Stack& scores, const Stack& probabilities, float scale,
                    const AttentionMask& mask);
// scores' gradient = scale * p * (g - sum(p * g)), row by row.
void softmax_gradient(TensorValues& values, const Stack& probabilities, const Stack& gradient,
                      const Stack& scores_gradient, float scale);

// Attention block by block, without scores in memory (online softmax). Statistics of a row: its maximum and its sum,
// and when all keys were seen the logarithm of the sum of exponentials, in place of the first.
struct BlockAttention {
  Stack query, key, value;
  Stack statistics;  // [count][2][rows of queries]
  float scale = 1;
  AttentionMask mask;
  bool first = true, last = true;  // of the blocks of keys
};
// `output` is the sum so far, and after the last block the result.
void attend(TensorValues& values, const BlockAttention& block, const Stack& sum_so_far, const Stack& output);
// sums[i][row] = sum over columns of a * b.
void row_products(TensorValues& values, const Stack& a, const Stack& b, TensorId sums);
// Adds to the gradient of the queries; writes those of keys and values, or adds to them.
void attend_backward(TensorValues& values, const BlockAttention& block, const Stack& output_gradient,
                     TensorId row_products, const Stack& query_gradient, const Stack& key_gradient,
                     const Stack& value_gradient, bool add);

}  // namespace weft
