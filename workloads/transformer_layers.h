// Layers of transformers. Tokens are rows, T = batch * sequence; the layout is that of NVIDIA's DeepLearningExamples
// (PyTorch/LanguageModeling/BERT/modeling.py): sequence first, so that heads need no copies before the batched
// products.
#pragma once

#include "workloads/dense_layers.h"

namespace weft {

struct AttentionShape {
  std::int64_t batch = 0, sequence = 0, heads = 0, head_size = 0;
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
  [[nodiscard]] std::int64_t hidden() const { return heads * head_size; }
};

// Input and output in the step's precision, arithmetic and parameters (weight, bias) in FP32, as apex' mixed layer
// norm.
[[nodiscard]] Matrix layer_norm(TrainingStep& step, const Matrix& in);
// x / root of the mean square, times a weight (Zhang and Sennrich, arXiv 1910.07467).
[[nodiscard]] Matrix rms_norm(TrainingStep& step, const Matrix& in);
// gate * sigmoid(gate) * in, of equal shapes (SwiGLU's product).
[[nodiscard]] Matrix silu_product(TrainingStep& step, const Matrix& gate, const Matrix& in);
[[nodiscard]] Matrix gelu(TrainingStep& step, const Matrix& in);
[[nodiscard]] Matrix tanh(TrainingStep& step, const Matrix& in);
// softmax(Q*K^T / sqrt(d) + mask), dropout, times V: batched GEMMs and a kernel each for scale, mask, softmax, dropout
// and the copy that brings the heads back together. No parameters: query, key and value are projected before.
[[nodiscard]] Matrix attention(TrainingStep& step, const AttentionShape& shape, const Matrix& query, const Matrix& key,
                               const Matrix& value);
// Rows of a table picked by `tokens` indices. The gradient is dense: zeroed and scattered into, in FP32.
[[nodiscard]] Matrix embedding(TrainingStep& step, TensorId table, std::int64_t tokens, std::int64_t hidden);
// Picks `rows` of the rows of a matrix, e.g. the masked tokens; the gradient of the others is zero.
[[nodiscard]] Matrix pick_rows(TrainingStep& step, const Matrix& in, std::int64_t rows);

}  // namespace weft
