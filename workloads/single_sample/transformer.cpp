#include "workloads/single_sample/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/error.h"
#include "workloads/models.h"
#include "workloads/optimizer.h"
#include "workloads/single_sample/tensor_parallel.h"
#include "workloads/transformer_layers.h"

namespace weft {

namespace {

// bert-large-uncased; gpt2 (124M); Llama-2-7b: config.json of each on Hugging Face.
const std::map<std::string, TransformerShape>& shapes() {
  static const std::map<std::string, TransformerShape> known{{"bert-large-encoder",
                                                              {.layers = 24,
                                                               .hidden = 1024,
                                                               .heads = 16,
                                                               .key_heads = 16,
                                                               .feed_forward = 4096,
                                                               .norm_after = true,
                                                               .lamb = true,
                                                               .default_sequence = 512}},
                                                             {"gpt2",
                                                              {.layers = 12,
                                                               .hidden = 768,
                                                               .heads = 12,
                                                               .key_heads = 12,
                                                               .feed_forward = 3072,
                                                               .vocabulary = 50257,
                                                               .positions = 1024,
                                                               .causal = true,
                                                               .tied = true,
                                                               .default_sequence = 1024}},
                                                             {"llama2-7b",
                                                              {.layers = 32,
                                                               .hidden = 4096,
                                                               .heads = 32,
                                                               .key_heads = 32,
                                                               .feed_forward = 11008,
                                                               .vocabulary = 32000,
                                                               .causal = true,
                                                               .rms = true,
                                                               .gated = true,
                                                               .rotary = true,
                                                               .default_sequence = 4096}}};
  return known;
}

class Transformer {
 public:
  Transformer(const ModelSpec& spec, const SampleSplit& split, const TransformerShape& shape)
      : step_(spec, spec.model), split_(split), shape_(shape), geometry_(geometry_of(shape, spec)) {
    if (split.has_all_rows()) step_.keep_gradients_apart();
  }

  Graph build(std::int64_t layers) {
    const std::int64_t rows = rows_of(split_, geometry_) * geometry_.batch;
    TensorId words;
    Matrix x = input(rows, words);
    for (std::int64_t layer = 0; layer < layers; ++layer) x = block(fmt::format("layer.{}", layer), x);
    output(x, words);
    step_.run_backward();
    shape_.lamb ? fused_lamb(step_) : fused_adam(step_);
    const double share = 1.0 / split_.size();
    return step_.finish(static_cast<double>(geometry_.batch) * share,
                        static_cast<double>(geometry_.batch * geometry_.tokens) * share);
  }

 private:
  Matrix input(std::int64_t rows, TensorId& words) {
    if (shape_.vocabulary == 0) {
      step_.in_layer("input");
      const TensorId given = step_.activation("given", rows * shape_.hidden);
      step_.no_gradient(given);
      return {given, rows, shape_.hidden};
    }
    step_.in_layer("embeddings.words");
    words = step_.parameter("weight", shape_.vocabulary * shape_.hidden, shape_.tied ? 2 : 1);
    Matrix x = embedding(step_, words, rows, shape_.hidden);
    if (shape_.positions == 0) return x;
    step_.in_layer("embeddings.positions");
    const std::int64_t places = std::max(shape_.positions, geometry_.tokens);
    const Matrix position = embedding(step_, step_.parameter("weight", places * shape_.hidden), rows, shape_.hidden);
    step_.in_layer("embeddings.sum");
    return add(step_, x, position);
  }

  Matrix norm(const std::string& name, const Matrix& in) {
    step_.in_layer(name);
    return shape_.rms ? rms_norm(step_, in) : layer_norm(step_, in);
  }

  Matrix sum(const std::string& name, const Matrix& in, const Matrix& shortcut) {
    step_.in_layer(name);
    return add(step_, in, shortcut);
  }

  Matrix block(const std::string& name, const Matrix& in) {
    const ProjectionForm form{!shape_.rms, shape_.rotary};
    const auto attend = [&](const Matrix& x) {
      step_.in_layer(name + ".attention");
      return attention_layer(step_, split_, geometry_, x, form);
    };
    if (shape_.norm_after) {
      const Matrix attended = norm(name + ".attention.norm", sum(name + ".attention.sum", attend(in), in));
      return norm(name + ".norm", sum(name + ".sum", feed_forward(name, attended), attended));
    }
    const Matrix attended = sum(name + ".attention.sum", attend(norm(name + ".attention.norm", in)), in);
    return sum(name + ".sum", feed_forward(name, norm(name + ".norm", attended)), attended);
  }

  Matrix feed_forward(const std::string& name, const Matrix& in) {
    const bool biased = !shape_.rms;
    const TensorGroup group = tensor_group(split_);
    const std::int64_t features = shape_.feed_forward / static_cast<std::int64_t>(group.gpus.size());
    step_.in_layer(name + ".feed_forward");
    const auto gathered = gather_rows(step_, group, in);
    const auto widened = [&](const char* part) {
      step_.in_layer(name + part);
      return column_parallel(step_, gathered, features, biased);
    };
    Matrix active;
    if (shape_.gated) {
      const Matrix gate = widened(".feed_forward.gate");
      const Matrix up = widened(".feed_forward.up");
      step_.in_layer(name + ".feed_forward.silu");
      active = silu_product(step_, gate, up);
    } else {
      const Matrix up = widened(".feed_forward.up");
      step_.in_layer(name + ".feed_forward.gelu");
      active = gelu(step_, up);
    }
    step_.in_layer(name + ".feed_forward.down");
    return row_parallel(step_, group, active, shape_.hidden, biased);
  }

  void output(const Matrix& in, TensorId words) {
    if (shape_.vocabulary == 0) {
      step_.in_layer("output");
      step_.add_gradient(in.tensor, step_.activation("gradient", in.elements()));
      return;
    }
    const Matrix normed = norm("final_norm", in);
    step_.in_layer("prediction");
    const Matrix logits = shape_.tied ? linear_tied(step_, normed, words, shape_.vocabulary, std::nullopt)
                                      : linear_without_bias(step_, normed, shape_.vocabulary);
    step_.in_layer("loss");
    cross_entropy(step_, logits);
  }

  TrainingStep step_;
  SampleSplit split_;
  TransformerShape shape_;
  AttentionGeometry geometry_;
};

}  // namespace

const TransformerShape* transformer_shape(const std::string& model) {
  const auto found = shapes().find(model);
  return found == shapes().end() ? nullptr : &found->second;
}

AttentionGeometry geometry_of(const TransformerShape& shape, const ModelSpec& spec) {
  const std::int64_t sequence = spec.sequence == 0 ? shape.default_sequence : std::int64_t{spec.sequence};
  const std::int64_t key_heads = spec.key_heads == 0 ? shape.key_heads : std::int64_t{spec.key_heads};
  return {sequence, spec.batch, shape.heads, key_heads, shape.hidden / shape.heads, shape.causal};
}

void validate(const TransformerShape& shape, const SampleSplit& split) {
  const std::int64_t parts = split.scheme == SampleScheme::megatron ? split.size() : 1;
  if (shape.feed_forward % parts != 0) {
    throw InputError("", "/scheme",
                     fmt::format("expected GPUs that divide the {} features of feed-forward layers, got {}",
                                 shape.feed_forward, parts));
  }
}

Graph make_transformer(const ModelSpec& spec, const SampleSplit& split) {
  const TransformerShape* shape = transformer_shape(spec.model);
  WEFT_CHECK(shape != nullptr, spec.model);
  WEFT_CHECK(spec.layers <= shape->layers, spec.model);
  validate(split, geometry_of(*shape, spec));
  validate(*shape, split);
  return Transformer(spec, split, *shape).build(spec.layers == 0 ? shape->layers : std::int64_t{spec.layers});
}

Graph make_whole_transformer(const ModelSpec& spec) {
  SampleSplit whole;
  whole.gpus = {0};
  return make_transformer(spec, whole);
}

}  // namespace weft
