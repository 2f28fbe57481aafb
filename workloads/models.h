// One function a model, called by make_model() with a checked specification. Layer shapes are those of the published
// reference implementations, named beside each.
#pragma once

#include "workloads/model_zoo.h"

namespace weft {

inline constexpr std::uint32_t kResNet50Blocks = 16;
inline constexpr std::uint32_t kBertLayers = 24;
inline constexpr std::uint32_t kBertPositions = 512;  // tokens of a sequence that have an embedding

[[nodiscard]] Graph make_resnet50(const ModelSpec& spec);
[[nodiscard]] Graph make_vgg16(const ModelSpec& spec);
[[nodiscard]] Graph make_bert_large(const ModelSpec& spec);
// Transformers of which a sample can be split as well (single_sample/transformer.h), here one a GPU.
[[nodiscard]] Graph make_whole_transformer(const ModelSpec& spec);
// The same of single_sample/temporal_network.h.
[[nodiscard]] Graph make_whole_wavenet(const ModelSpec& spec);

}  // namespace weft
