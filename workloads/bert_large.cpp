// BERT-large pre-training: masked tokens and next sentence, BertForPreTraining of Hugging Face's transformers for
// bert-large-uncased, whose decoder shares the word embeddings: 336,226,108 parameters (335,141,888 of them encoder and
// pooler). NVIDIA's DeepLearningExamples pad the vocabulary to 30,528, 6,150 parameters more. Kernels, the LAMB
// optimizer and the prediction of masked tokens only follow NVIDIA's.
#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "workloads/models.h"
#include "workloads/optimizer.h"
#include "workloads/transformer_layers.h"

namespace weft {
namespace {

constexpr std::int64_t kVocabulary = 30522;
constexpr std::int64_t kHidden = 1024;
constexpr std::int64_t kFeedForward = 4096;
constexpr std::int64_t kHeads = 16;
constexpr std::uint32_t kDefaultSequence = 128;

// A linear layer, dropout, the sum with the layer's input, layer norm.
Matrix output_block(TrainingStep& step, const std::string& prefix, const Matrix& in, const Matrix& shortcut) {
  step.in_layer(prefix + "output.dense");
  const Matrix dense = linear(step, in, kHidden);
  step.in_layer(prefix + "output.dropout");
  const Matrix dropped = dropout(step, dense);
  step.in_layer(prefix + "output.add");
  const Matrix sum = add(step, dropped, shortcut);
  step.in_layer(prefix + "output.LayerNorm");
  return layer_norm(step, sum);
}

Matrix encoder_layer(TrainingStep& step, const std::string& prefix, const AttentionShape& shape, const Matrix& in) {
  const auto projected = [&](const char* name) {
    step.in_layer(prefix + "attention.self." + name);
    return linear(step, in, kHidden);
  };
  const Matrix query = projected("query");
  const Matrix key = projected("key");
  const Matrix value = projected("value");
  step.in_layer(prefix + "attention.self");
  const Matrix context = attention(step, shape, query, key, value);
  const Matrix attended = output_block(step, prefix + "attention.", context, in);
  step.in_layer(prefix + "intermediate.dense");
  const Matrix widened = linear(step, attended, kFeedForward);
  step.in_layer(prefix + "intermediate.gelu");
  const Matrix activated = gelu(step, widened);
  return output_block(step, prefix, activated, attended);
}

Matrix embeddings(TrainingStep& step, TensorId words, std::int64_t tokens) {
  step.in_layer("bert.embeddings.word_embeddings");
  const Matrix word = embedding(step, words, tokens, kHidden);
  step.in_layer("bert.embeddings.position_embeddings");
  const Matrix position = embedding(step, step.parameter("weight", kBertPositions * kHidden), tokens, kHidden);
  step.in_layer("bert.embeddings.token_type_embeddings");
  const Matrix type = embedding(step, step.parameter("weight", 2 * kHidden), tokens, kHidden);
  step.in_layer("bert.embeddings.add");
  const Matrix sum = add(step, add(step, word, position), type);
  step.in_layer("bert.embeddings.LayerNorm");
  const Matrix normed = layer_norm(step, sum);
  step.in_layer("bert.embeddings.dropout");
  return dropout(step, normed);
}

}  // namespace

Graph make_bert_large(const ModelSpec& spec) {
  const std::uint32_t sequence = spec.sequence == 0 ? kDefaultSequence : spec.sequence;
  const std::int64_t layers = spec.layers == 0 ? kBertLayers : spec.layers;
  TrainingStep step(spec, "bert-large");
  const AttentionShape shape{spec.batch, sequence, kHeads, kHidden / kHeads};
  step.in_layer("bert.embeddings.word_embeddings");
  const TensorId words = step.parameter("weight", kVocabulary * kHidden, 2);
  Matrix x = embeddings(step, words, shape.tokens());
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    x = encoder_layer(step, fmt::format("bert.encoder.layer.{}.", layer), shape, x);
  }

  step.in_layer("bert.pooler.first_token");
  const Matrix first = pick_rows(step, x, shape.batch);
  step.in_layer("bert.pooler.dense");
  const Matrix pooled = tanh(step, linear(step, first, kHidden));

  // max_predictions_per_seq of NVIDIA's pre-training data: 20 at 128 tokens, 80 at 512.
  const std::int64_t predictions = shape.batch * std::max<std::int64_t>(1, std::int64_t{sequence} * 20 / 128);
  step.in_layer("cls.predictions.masked");
  Matrix masked = pick_rows(step, x, predictions);
  step.in_layer("cls.predictions.transform.dense");
  masked = gelu(step, linear(step, masked, kHidden));
  step.in_layer("cls.predictions.transform.LayerNorm");
  masked = layer_norm(step, masked);
  step.in_layer("cls.predictions");
  const TensorId decoder_bias = step.parameter("bias", kVocabulary);
  const Matrix scores = linear_tied(step, masked, words, kVocabulary, decoder_bias);
  step.in_layer("cls.seq_relationship");
  const Matrix relation = linear(step, pooled, 2);
  step.in_layer("cls.predictions.loss");
  cross_entropy(step, scores);
  step.in_layer("cls.seq_relationship.loss");
  cross_entropy(step, relation);
  step.run_backward();
  fused_lamb(step);
  return step.finish(spec.batch, static_cast<double>(shape.tokens()));
}

}  // namespace weft
