#include "workloads/model_zoo.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "workloads/models.h"
#include "workloads/single_sample/temporal_network.h"
#include "workloads/single_sample/transformer.h"
#include "workloads/training_step.h"

namespace weft {
namespace {

struct Entry {
  ModelInfo info;
  Graph (*make)(const ModelSpec&);
  std::int64_t most_layers = 0;    // of which the first alone can be taken; 0: none can
  std::int64_t most_sequence = 0;  // 0: any
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> known{
      {{"bert-large", "BERT-large pre-training, 336,226,108 parameters, LAMB"},
       make_bert_large,
       kBertLayers,
       kBertPositions},
      {{"bert-large-encoder", "the 24 layers of BERT-large without embeddings and heads, 302,309,376 parameters, LAMB"},
       make_whole_transformer,
       transformer_shape("bert-large-encoder")->layers},
      {{"gpt2", "GPT-2, 124,439,808 parameters, AdamW"}, make_whole_transformer, transformer_shape("gpt2")->layers},
      {{"llama2-7b", "LLaMA-2 7B, 6,738,415,616 parameters, AdamW"},
       make_whole_transformer,
       transformer_shape("llama2-7b")->layers},
      {{"resnet50", "ResNet-50 v1.5 on 224 x 224 images, 25,557,032 parameters, SGD with momentum"},
       make_resnet50,
       kResNet50Blocks},
      {{"vgg16", "VGG-16 on 224 x 224 images, 138,357,544 parameters, SGD with momentum"}, make_vgg16},
      {{"wavenet", "WaveNet on 100,000 samples of raw audio, 1,514,912 parameters, AdamW"},
       make_whole_wavenet,
       wavenet_shape().layers},
  };
  return known;
}

const Entry& entry_of(const std::string& model) {
  const auto found =
      std::find_if(entries().begin(), entries().end(), [&](const Entry& entry) { return entry.info.name == model; });
  if (found != entries().end()) return *found;
  std::string names;
  for (const Entry& entry : entries()) names += (names.empty() ? "'" : ", '") + entry.info.name + "'";
  throw InputError("", "/workload/model", fmt::format("expected one of {}, got '{}'", names, model));
}

}  // namespace

std::vector<ModelInfo> models() {
  std::vector<ModelInfo> infos;
  for (const Entry& entry : entries()) infos.push_back(entry.info);
  return infos;
}

void validate(const ModelSpec& spec) {
  const Entry& entry = entry_of(spec.model);
  if (spec.batch == 0) throw InputError("", "/workload/batch", "expected 1 or more, got 0");
  if (spec.layers != 0 && entry.most_layers == 0) {
    throw InputError("", "/workload/layers",
                     fmt::format("expected 0: {} is taken whole, got {}", spec.model, spec.layers));
  }
  if (spec.layers > entry.most_layers) {
    throw InputError("", "/workload/layers",
                     fmt::format("expected 0 (all) to {}, got {}", entry.most_layers, spec.layers));
  }
  if (entry.most_sequence != 0 && spec.sequence > entry.most_sequence) {
    throw InputError("", "/workload/sequence",
                     fmt::format("expected 1 to {}, got {}", entry.most_sequence, spec.sequence));
  }
  (void)precision_of(spec.precision);
}

Graph make_model(const ModelSpec& spec) {
  validate(spec);
  if (spec.compute_units == 0) throw InputError("", "/system/gpu/compute_units", "expected 1 or more, got 0");
  return entry_of(spec.model).make(spec);
}

std::vector<TensorId> parameters(const Graph& graph) {
  std::vector<TensorId> ids;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.gradient_of) ids.push_back(*tensor.gradient_of);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t elements = 0;
  for (const TensorId id : parameters(graph)) elements += graph.tensors[id.value].bytes.count() / 4;
  return elements;
}

}  // namespace weft
