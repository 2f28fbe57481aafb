// Whole Transformers whose samples may be split over several GPUs: encoder and decoder shapes of published models.
#pragma once

#include "workloads/single_sample/attention_layer.h"

namespace weft {

struct TransformerShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, key_heads = 0, feed_forward = 0;
  std::int64_t vocabulary = 0;  // 0: no embedding and no prediction, the input and the output's gradient are there
  std::int64_t positions = 0;   // places with an embedding; 0: none. Longer sequences take a longer table.
  bool causal = false;
  bool rms = false;    // root mean square norms, without biases anywhere
  bool gated = false;  // feed-forward layers with a gate (SwiGLU)
  bool rotary = false;
  bool norm_after = false;  // norms behind sums, as the first Transformers had them
  bool tied = false;        // the prediction's weights are the embedding's
  bool lamb = false;        // optimizer: LAMB, else AdamW
  std::int64_t default_sequence = 0;
};

// Of a model of the zoo; null where it cannot be split.
[[nodiscard]] const TransformerShape* transformer_shape(const std::string& model);
[[nodiscard]] AttentionGeometry geometry_of(const TransformerShape& shape, const ModelSpec& spec);
// Throws InputError where the GPUs do not divide what they share of the feed-forward layers.
void validate(const TransformerShape& shape, const SampleSplit& split);
// The training step of one of the GPUs that share spec.batch samples. Throws InputError for heads of keys or a split
// that the shape cannot take.
[[nodiscard]] Graph make_transformer(const ModelSpec& spec, const SampleSplit& split);

}  // namespace weft
